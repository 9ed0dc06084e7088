package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt16  = 4
	thriftInt32  = 5
	thriftInt64  = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12

	thriftDepth = 24 // Parquet's headers need 7
)

// thrift parses without allocating: results are slices of b. It keeps the first error.
type thrift struct {
	b     []byte
	at    int
	depth int
	err   error
}

var errHeaderShort = fmt.Errorf("the header ends too early: %w", io.ErrUnexpectedEOF)

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *thrift) take(n uint64) []byte {
	if t.err == nil && n > uint64(len(t.b)-t.at) {
		t.err = errHeaderShort
	}
	if t.err != nil {
		return nil
	}
	part := t.b[t.at : t.at+int(n)]
	t.at += int(n)
	return part
}

func (t *thrift) byte() byte {
	if b := t.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (t *thrift) uvarint() uint64 {
	if t.err != nil {
		return 0
	}
	v, n := binary.Uvarint(t.b[t.at:])
	switch {
	case n == 0:
		t.fail(errHeaderShort)
	case n < 0:
		t.fail(errors.New("a number in the header has more than 64 bits"))
	}
	if t.err != nil {
		return 0
	}
	t.at += n
	return v
}

func (t *thrift) varint() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (t *thrift) int(kind byte) int64 {
	switch kind {
	case thriftByte:
		return int64(int8(t.byte()))
	case thriftInt16, thriftInt32, thriftInt64:
		return t.varint()
	}
	t.fail(fmt.Errorf("a field of the header has kind %d, expected a number", kind))
	return 0
}

func (t *thrift) bytes(kind byte) []byte {
	if kind != thriftBinary {
		t.fail(fmt.Errorf("a field of the header has kind %d, expected text", kind))
		return nil
	}
	return t.take(t.uvarint())
}

func (t *thrift) bool(kind byte) bool {
	if kind != thriftTrue && kind != thriftFalse {
		t.fail(fmt.Errorf("a field of the header has kind %d, expected true or false", kind))
	}
	return kind == thriftTrue
}

func (t *thrift) structure(kind byte, field func(id int64, kind byte)) {
	if kind != thriftStruct {
		t.fail(fmt.Errorf("a field of the header has kind %d, expected a structure", kind))
		return
	}
	t.fields(field)
}

// fields skips unread values. A bool's value is its kind.
func (t *thrift) fields(field func(id int64, kind byte)) {
	if t.depth++; t.depth > thriftDepth {
		t.fail(fmt.Errorf("the header is nested more than %d deep", thriftDepth))
	}
	defer func() { t.depth-- }()
	for id := int64(0); t.err == nil; {
		head := t.byte()
		if head == 0 {
			return
		}
		if delta := int64(head >> 4); delta != 0 {
			id += delta
		} else {
			id = t.varint()
		}
		if kind, at := head&15, t.at; t.err == nil {
			if field(id, kind); t.at == at {
				t.skip(kind)
			}
		}
	}
}

// list's elements have at least a byte each.
func (t *thrift) list(kind byte) (n int, of byte) {
	if kind != thriftList && kind != thriftSet {
		t.fail(fmt.Errorf("a field of the header has kind %d, expected a list", kind))
	}
	head := t.byte()
	size := uint64(head >> 4)
	if size == 15 {
		size = t.uvarint()
	}
	if size > uint64(len(t.b)-t.at) {
		t.fail(errHeaderShort)
	}
	if t.err != nil {
		return 0, 0
	}
	return int(size), head & 15
}

func (t *thrift) skip(kind byte) {
	switch kind {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.take(1)
	case thriftInt16, thriftInt32, thriftInt64:
		t.uvarint()
	case thriftDouble:
		t.take(8)
	case thriftBinary:
		t.take(t.uvarint())
	case thriftList, thriftSet:
		n, of := t.list(kind)
		t.skipElements(n, of)
	case thriftMap:
		if n := t.uvarint(); n > 0 {
			kinds := t.byte()
			for ; n > 0 && t.err == nil; n-- {
				t.skipElements(1, kinds>>4)
				t.skipElements(1, kinds&15)
			}
		}
	case thriftStruct:
		t.fields(func(int64, byte) {})
	default:
		t.fail(fmt.Errorf("a field of the header is of the unknown kind %d", kind))
	}
}

func (t *thrift) skipElements(n int, of byte) {
	if t.depth++; t.depth > thriftDepth {
		t.fail(fmt.Errorf("the header is nested more than %d deep", thriftDepth))
	}
	defer func() { t.depth-- }()
	if of == thriftTrue || of == thriftFalse {
		of = thriftByte
	}
	for ; n > 0 && t.err == nil; n-- {
		t.skip(of)
	}
}
