package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

type kind int

const (
	signed kind = iota
	unsigned
	float
	text
)

// value ends with the page.
type value struct {
	kind  kind
	int   int64 // the bits, if unsigned
	float float64
	text  []byte
}

type values interface {
	next(v *value) error
	clone() values
}

const (
	encodingPlain       = 0
	encodingPlainDict   = 2
	encodingRuns        = 3
	encodingDeltas      = 5
	encodingDeltaLength = 6
	encodingDict        = 8
	encodingSplit       = 9
)

func newValues(l *leaf, encoding int, b []byte, count int, dict *dictionary) (values, error) {
	switch {
	case encoding == encodingPlain:
		return &plain{leaf: l, b: b}, nil
	case encoding == encodingDict || encoding == encodingPlainDict:
		if dict.leaf == nil {
			return nil, errors.New("the page needs a dictionary, and there was none before it")
		}
		if len(b) == 0 { // all null
			return &places{dict: dict}, nil
		}
		if b[0] > 32 {
			return nil, fmt.Errorf("places in the dictionary have %d bits, expected at most 32", b[0])
		}
		return &places{runs{b: b[1:], width: uint(b[0])}, dict}, nil
	case encoding == encodingRuns && l.typ == typeBool:
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			if len(b) == 0 {
				return &bools{}, nil
			}
			return nil, errPageShort
		}
		return &bools{runs{b: b[4:][:binary.LittleEndian.Uint32(b)], width: 1}}, nil
	case encoding == encodingDeltas && (l.typ == typeInt32 || l.typ == typeInt64):
		if len(b) == 0 {
			return &differences{leaf: l, deltas: &deltas{}}, nil
		}
		d, err := newDeltas(b, count)
		return &differences{l, d}, err
	case encoding == encodingDeltaLength && l.typ == typeBytes:
		return newLengths(b, count)
	case encoding == encodingSplit && l.width() > 0:
		if len(b)%l.width() != 0 {
			return nil, fmt.Errorf("the page has %d bytes for values of %d", len(b), l.width())
		}
		return &split{leaf: l, b: b, n: len(b) / l.width(), part: make([]byte, 0, 8)}, nil
	}
	return nil, fmt.Errorf("the page has the encoding %d for type %d, which is not supported: expected plain, dictionary, run length, delta or byte stream split", encoding, l.typ)
}

// width is a plain value's bytes; 0 if it varies.
func (l *leaf) width() int {
	switch l.typ {
	case typeInt32, typeFloat:
		return 4
	case typeInt64, typeDouble:
		return 8
	case typeFixed:
		return l.length
	}
	return 0
}

func (l *leaf) set(v *value, b []byte) {
	switch l.typ {
	case typeInt32:
		l.setInt(v, int64(int32(binary.LittleEndian.Uint32(b))))
	case typeInt64:
		l.setInt(v, int64(binary.LittleEndian.Uint64(b)))
	case typeFloat:
		*v = value{kind: float, float: float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))}
	case typeDouble:
		*v = value{kind: float, float: math.Float64frombits(binary.LittleEndian.Uint64(b))}
	default:
		*v = value{kind: text, text: b}
	}
}

func (l *leaf) setInt(v *value, i int64) {
	switch {
	case l.unsigned && l.typ == typeInt32:
		*v = value{kind: unsigned, int: int64(uint32(i))}
	case l.unsigned:
		*v = value{kind: unsigned, int: i}
	case l.typ == typeInt32:
		*v = value{int: int64(int32(i))}
	default:
		*v = value{int: i}
	}
}

type plain struct {
	*leaf
	b   []byte
	bit uint64 // of typeBool
}

func (p *plain) next(v *value) error {
	switch p.typ {
	case typeBool:
		if p.bit>>3 >= uint64(len(p.b)) {
			return errPageShort
		}
		*v = value{int: int64(p.b[p.bit>>3] >> (p.bit & 7) & 1)}
		p.bit++
		return nil
	case typeBytes:
		if len(p.b) < 4 || uint64(binary.LittleEndian.Uint32(p.b)) > uint64(len(p.b)-4) {
			return errPageShort
		}
		n := int(binary.LittleEndian.Uint32(p.b))
		*v = value{kind: text, text: p.b[4 : 4+n : 4+n]}
		p.b = p.b[4+n:]
		return nil
	}
	w := p.width()
	if len(p.b) < w {
		return errPageShort
	}
	p.set(v, p.b[:w:w])
	p.b = p.b[w:]
	return nil
}

type dictionary struct {
	*leaf
	b      []byte
	buffer []byte
	count  int
	starts []uint32 // of typeBytes, in b
	// classes of the first texts; -1 for none
	classes []int32
}

func (d *dictionary) text(i int) []byte {
	at := int(d.starts[i])
	n := int(binary.LittleEndian.Uint32(d.b[at:]))
	return d.b[at+4 : at+4+n : at+4+n]
}

func (d *dictionary) fill(l *leaf, count int, mem *memory) error {
	d.leaf, d.count, d.starts, d.classes = l, count, d.starts[:0], d.classes[:0]
	if l.typ == typeBool {
		return errors.New("a dictionary of truth values")
	}
	if w := l.width(); w > 0 {
		if count > len(d.b)/w {
			return fmt.Errorf("a dictionary of %d values in %d bytes: %w", count, len(d.b), errPageShort)
		}
		return nil
	}
	if count > len(d.b)/4 {
		return fmt.Errorf("a dictionary of %d values in %d bytes: %w", count, len(d.b), errPageShort)
	}
	taken := int64(0)
	starts, err := grown(mem, d.starts, count, 4, &taken)
	if err != nil {
		return err
	}
	for at := uint64(0); len(starts) < count; {
		rest := uint64(len(d.b)) - at
		if rest < 4 || uint64(binary.LittleEndian.Uint32(d.b[at:])) > rest-4 {
			return errPageShort
		}
		starts = append(starts, uint32(at))
		at += 4 + uint64(binary.LittleEndian.Uint32(d.b[at:]))
	}
	d.starts = starts
	return nil
}

type places struct {
	runs
	dict *dictionary
}

func (p *places) next(v *value) error {
	i, err := p.runs.next()
	if err != nil {
		return err
	}
	d := p.dict
	if uint64(i) >= uint64(d.count) {
		return fmt.Errorf("place %d in a dictionary of %d values", i, d.count)
	}
	if w := d.width(); w > 0 {
		at := int(i) * w
		d.set(v, d.b[at:at+w:at+w])
		return nil
	}
	*v = value{kind: text, text: d.text(int(i))}
	return nil
}

type bools struct{ runs }

func (b *bools) next(v *value) error {
	i, err := b.runs.next()
	*v = value{int: int64(i)}
	return err
}

type differences struct {
	*leaf
	*deltas
}

func (d *differences) next(v *value) error {
	i, err := d.deltas.next()
	d.setInt(v, i)
	return err
}

// lengths decodes DELTA_LENGTH_BYTE_ARRAY.
type lengths struct {
	lengths *deltas
	b       []byte
}

func newLengths(b []byte, count int) (*lengths, error) {
	if len(b) == 0 {
		return &lengths{&deltas{}, nil}, nil
	}
	d, err := newDeltas(b, count)
	if err != nil {
		return nil, err
	}
	behind := *d // skips the lengths
	for behind.count > 0 {
		if _, err := behind.next(); err != nil {
			return nil, err
		}
	}
	return &lengths{d, behind.b}, nil
}

func (l *lengths) next(v *value) error {
	n, err := l.lengths.next()
	if err == nil && (n < 0 || n > int64(len(l.b))) {
		err = errPageShort
	}
	if err != nil {
		return err
	}
	*v = value{kind: text, text: l.b[:n:n]}
	l.b = l.b[n:]
	return nil
}

// split decodes BYTE_STREAM_SPLIT.
type split struct {
	*leaf
	b    []byte
	n    int
	at   int
	part []byte
}

func (s *split) next(v *value) error {
	if s.at == s.n {
		return errPageShort
	}
	s.part = s.part[:0]
	for i := s.at; i < len(s.b); i += s.n {
		s.part = append(s.part, s.b[i])
	}
	s.at++
	s.set(v, s.part)
	return nil
}

func (p *plain) clone() values   { q := *p; return &q }
func (p *places) clone() values  { q := *p; return &q }
func (b *bools) clone() values   { q := *b; return &q }
func (s *split) clone() values   { q := *s; q.part = make([]byte, 0, 8); return &q }
func (l *lengths) clone() values { d := *l.lengths; return &lengths{&d, l.b} }
func (d *differences) clone() values {
	deltas := *d.deltas
	return &differences{d.leaf, &deltas}
}
