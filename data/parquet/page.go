package parquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/shield"
)

type pageHeader struct {
	typ, unpacked, packed  int
	crc                    uint32
	hasCRC                 bool
	values, encoding       int
	levels                 [2]int // definition, repetition
	defBytes, repBytes     int    // of pageDataV2
	isPacked, hasOwnHeader bool
}

const (
	pageData       = 0
	pageDictionary = 2
	pageDataV2     = 3

	mostHeader = 1 << 20 // mostly the page's minimum and maximum
)

func parsePageHeader(t *thrift) pageHeader {
	h := pageHeader{isPacked: true, levels: [2]int{encodingRuns, encodingRuns}}
	t.fields(func(id int64, kind byte) {
		switch id {
		case 1:
			h.typ = small(t, kind)
		case 2:
			h.unpacked = small(t, kind)
		case 3:
			h.packed = small(t, kind)
		case 4:
			h.crc, h.hasCRC = uint32(t.int(kind)), true
		case 5, 7:
			h.hasOwnHeader = true
			t.structure(kind, func(id int64, kind byte) {
				switch id {
				case 1:
					h.values = small(t, kind)
				case 2:
					h.encoding = small(t, kind)
				case 3, 4:
					if kind == thriftInt32 { // a bool in a dictionary's header
						h.levels[id-3] = small(t, kind)
					}
				}
			})
		case 8:
			h.hasOwnHeader = true
			t.structure(kind, func(id int64, kind byte) {
				switch id {
				case 1:
					h.values = small(t, kind)
				case 4:
					h.encoding = small(t, kind)
				case 5:
					h.defBytes = small(t, kind)
				case 6:
					h.repBytes = small(t, kind)
				case 7:
					h.isPacked = t.bool(kind)
				}
			})
		}
	})
	return h
}

type unpacker struct {
	file   io.ReaderAt
	mem    *memory
	header []byte
	packed []byte
	gzip   *gzip.Reader
	zstd   *zstd.Decoder
}

func (u *unpacker) close() {
	if u.zstd != nil {
		u.zstd.Close()
	}
}

func (u *unpacker) pageHeader(at, end int64) (h pageHeader, length int64, err error) {
	for size := int64(512); ; size *= 8 {
		size = min(size, end-at, mostHeader)
		if u.header, err = u.mem.buffer(u.header, int(size)); err != nil {
			return h, 0, err
		}
		if err = readAt(u.file, u.header, at); err != nil {
			return h, 0, err
		}
		t := &thrift{b: u.header}
		h = parsePageHeader(t)
		if t.err == nil && !h.hasOwnHeader && h.typ != 1 {
			t.err = fmt.Errorf("the page is of type %d, without the header of one", h.typ)
		}
		if t.err == nil {
			return h, int64(t.at), nil
		}
		if !errors.Is(t.err, io.ErrUnexpectedEOF) || size == min(end-at, mostHeader) {
			return h, 0, damaged(at, "the page's header: %w", t.err)
		}
	}
}

const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecZstd   = 6
)

// page leaves version 2's leading levels.
func (u *unpacker) page(h pageHeader, codec int, at int64, buffer []byte) ([]byte, error) {
	levels := 0
	if h.typ == pageDataV2 {
		levels = h.defBytes + h.repBytes
		if levels > min(h.packed, h.unpacked) {
			return buffer, fmt.Errorf("the levels have %d bytes, the page %d", levels, min(h.packed, h.unpacked))
		}
		if !h.isPacked {
			codec = codecNone
		}
	}
	if err := possible(codec, h.packed-levels, h.unpacked-levels); err != nil {
		return buffer, err
	}
	var err error
	if codec == codecNone {
		if buffer, err = u.mem.buffer(buffer, h.unpacked); err == nil {
			err = readAt(u.file, buffer, at)
		}
		if err == nil {
			err = checkSum(h, buffer)
		}
		return buffer, err
	}
	if u.packed, err = u.mem.buffer(u.packed, h.packed); err == nil {
		err = readAt(u.file, u.packed, at)
	}
	if err == nil {
		err = checkSum(h, u.packed)
	}
	packed := u.packed
	if err == nil && codec == codecSnappy && h.unpacked > levels {
		// snappy.Decode would allocate the claimed length.
		n, bad := snappy.DecodedLen(packed[levels:])
		if bad != nil {
			err = fmt.Errorf("unpack: %w", bad)
		} else if n != h.unpacked-levels {
			err = fmt.Errorf("unpack: snappy says %d bytes, the page's header %d", n, h.unpacked-levels)
		}
	}
	if err != nil {
		return buffer, err
	}
	if buffer, err = u.mem.buffer(buffer, h.unpacked); err != nil {
		return buffer, err
	}
	copy(buffer, packed[:levels])
	if h.unpacked > levels {
		if err := u.unpack(codec, packed[levels:], buffer[levels:]); err != nil {
			return buffer, fmt.Errorf("unpack: %w", err)
		}
	}
	return buffer, nil
}

func possible(codec, packed, unpacked int) error {
	most := int64(packed)
	switch codec {
	case codecNone:
		if packed != unpacked {
			return fmt.Errorf("the page is not packed, but has %d bytes where %d are expected", packed, unpacked)
		}
	case codecSnappy:
		most *= 64 // a copy of 64 bytes takes 2
	case codecGzip:
		most *= 1032
	case codecZstd:
		most *= 1 << 17
	default:
		return fmt.Errorf("the page is packed by codec %d, which is not supported: expected none, snappy, gzip or zstd", codec)
	}
	if int64(unpacked) > most {
		return fmt.Errorf("the page claims %d bytes, of %d packed ones: %w", unpacked, packed, data.ErrLimit)
	}
	return nil
}

func checkSum(h pageHeader, b []byte) error {
	if h.hasCRC && crc32.ChecksumIEEE(b) != h.crc {
		return errors.New("wrong checksum of the page: the file is damaged")
	}
	return nil
}

func (u *unpacker) unpack(codec int, packed, to []byte) error {
	return shield.Do(func() error { return u.unpackBy(codec, packed, to) }) // decompressors may panic
}

func (u *unpacker) unpackBy(codec int, packed, to []byte) (err error) {
	switch codec {
	case codecSnappy:
		_, err := snappy.Decode(to, packed)
		return err
	case codecGzip:
		if u.gzip == nil {
			u.gzip = new(gzip.Reader)
		}
		if err := u.gzip.Reset(bytes.NewReader(packed)); err != nil {
			return err
		}
		if _, err := io.ReadFull(u.gzip, to); err != nil {
			return err
		}
		if n, err := u.gzip.Read(make([]byte, 1)); n > 0 || err != io.EOF {
			return fmt.Errorf("more than %d bytes, or a wrong checksum (%v)", len(to), err)
		}
		return nil
	}
	if u.zstd == nil {
		if err := u.mem.take(1 << 20); err != nil {
			return err
		}
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return err
		}
	}
	out, err := u.zstd.DecodeAll(packed, to[:0:len(to)])
	if err == nil && len(out) != len(to) {
		err = fmt.Errorf("%d bytes, expected %d", len(out), len(to))
	}
	return err
}

func levelBits(most int) uint { return uint(bits.Len(uint(most))) }
