package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

var errPageShort = fmt.Errorf("the page ends too early: %w", io.ErrUnexpectedEOF)

// bitsAt reads least significant bits first.
func bitsAt(b []byte, p uint64, width uint) uint64 {
	at, shift := p>>3, uint(p&7)
	var low, high uint64
	if at+9 <= uint64(len(b)) {
		low, high = binary.LittleEndian.Uint64(b[at:]), uint64(b[at+8])
	} else {
		var part [9]byte
		copy(part[:], b[min(at, uint64(len(b))):])
		low, high = binary.LittleEndian.Uint64(part[:]), uint64(part[8])
	}
	v := low >> shift
	if shift > 0 {
		v |= high << (64 - shift)
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// runs are decoded on request: a claimed length allocates nothing.
type runs struct {
	b      []byte
	width  uint
	left   uint64
	same   uint32
	packed []byte // nil for one number
	bit    uint64
}

func (r *runs) next() (uint32, error) {
	for r.left == 0 {
		if err := r.run(); err != nil {
			return 0, err
		}
	}
	r.left--
	if r.packed == nil {
		return r.same, nil
	}
	if r.bit+uint64(r.width) > 8*uint64(len(r.packed)) {
		return 0, errPageShort
	}
	v := bitsAt(r.packed, r.bit, r.width)
	r.bit += uint64(r.width)
	return uint32(v), nil
}

func (r *runs) run() error {
	head, n := binary.Uvarint(r.b)
	if n <= 0 || head > 1<<33 {
		if n == 0 {
			return errPageShort
		}
		return errors.New("a run of numbers has a header of more than 33 bits")
	}
	r.b = r.b[n:]
	if head&1 == 0 {
		bytes := int(r.width+7) / 8
		if len(r.b) < bytes {
			return errPageShort
		}
		var v [4]byte
		copy(v[:], r.b[:bytes])
		r.b = r.b[bytes:]
		r.left, r.packed, r.same = head>>1, nil, binary.LittleEndian.Uint32(v[:])
		if uint64(r.same)>>r.width != 0 {
			return fmt.Errorf("a run of %d has more than %d bits", r.same, r.width)
		}
		return nil
	}
	// Some writers truncate the last group: an error only if the missing part is read.
	bytes := min(head>>1*uint64(r.width), uint64(len(r.b)))
	r.left, r.packed, r.bit = head>>1*8, r.b[:bytes:bytes], 0
	if r.packed == nil { // width 0
		r.packed = []byte{}
	}
	r.b = r.b[bytes:]
	return nil
}

// deltas decodes DELTA_BINARY_PACKED.
type deltas struct {
	b       []byte
	count   uint64
	block   uint64
	minis   uint64 // per block
	first   bool
	value   int64
	least   int64
	widths  []byte
	inMini  uint64
	packed  []byte
	bit     uint64
	current uint
}

func newDeltas(b []byte, most int) (*deltas, error) {
	d := &deltas{b: b, first: true}
	d.block, d.minis, d.count = d.uvarint(), d.uvarint(), d.uvarint()
	u := d.uvarint()
	d.value = int64(u>>1) ^ -int64(u&1)
	switch {
	case d.b == nil:
		return nil, errPageShort
	case d.minis == 0 || d.minis > 4096 || d.block == 0 || d.block > 1<<16 || d.block%(8*d.minis) != 0:
		return nil, fmt.Errorf("differences in blocks of %d values and %d parts: expected parts of a multiple of 8, and blocks of at most 65536", d.block, d.minis)
	case d.count > uint64(most):
		return nil, fmt.Errorf("%d differences in a page of %d values", d.count, most)
	}
	return d, nil
}

// uvarint sets b to nil without a number.
func (d *deltas) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b = nil
		return 0
	}
	d.b = d.b[n:len(d.b):len(d.b)]
	return v
}

func (d *deltas) next() (int64, error) {
	if d.count == 0 {
		return 0, errPageShort
	}
	d.count--
	if d.first {
		d.first = false
		return d.value, nil
	}
	if d.inMini == 0 {
		if err := d.mini(); err != nil {
			return 0, err
		}
	}
	d.inMini--
	d.value += d.least + int64(bitsAt(d.packed, d.bit, d.current))
	d.bit += uint64(d.current)
	return d.value, nil
}

func (d *deltas) mini() error {
	if len(d.widths) == 0 {
		u := d.uvarint()
		if d.b == nil || uint64(len(d.b)) < d.minis {
			return errPageShort
		}
		d.least = int64(u>>1) ^ -int64(u&1)
		d.widths, d.b = d.b[:d.minis], d.b[d.minis:]
	}
	d.current, d.widths = uint(d.widths[0]), d.widths[1:]
	if d.current > 64 {
		return fmt.Errorf("differences of %d bits, expected at most 64", d.current)
	}
	d.inMini = d.block / d.minis
	bytes := d.inMini * uint64(d.current) / 8
	if bytes > uint64(len(d.b)) {
		return errPageShort
	}
	d.packed, d.bit, d.b = d.b[:bytes], 0, d.b[bytes:]
	return nil
}
