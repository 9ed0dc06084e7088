package parquet

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// header has the fields 1 (int32 -3), 2 (true), 5 ("ab"), 6 (int32 1, 2), and 21 (a structure with false in 1).
var header = []byte{0x15, 0x05, 0x11, 0x38, 0x02, 'a', 'b', 0x19, 0x25, 0x02, 0x04, 0x0c, 0x2a, 0x12, 0x00, 0x00}

func TestThrift(t *testing.T) {
	for _, skips := range []bool{false, true} {
		r := thrift{b: append(bytes.Clone(header), 0x77)}
		var ids []int64
		r.fields(func(id int64, kind byte) {
			if ids = append(ids, id); skips {
				return
			}
			switch id {
			case 1:
				require.EqualValues(t, -3, r.int(kind))
			case 2:
				require.True(t, r.bool(kind))
			case 5:
				require.Equal(t, "ab", string(r.bytes(kind)))
			case 6:
				n, of := r.list(kind)
				require.Equal(t, 2, n)
				require.EqualValues(t, 1, r.int(of))
				require.EqualValues(t, 2, r.int(of))
			case 21:
				r.structure(kind, func(_ int64, kind byte) { require.False(t, r.bool(kind)) })
			}
		})
		require.NoError(t, r.err)
		require.Equal(t, []int64{1, 2, 5, 6, 21}, ids)
		require.Equal(t, len(header), r.at)
	}
	for n := range header {
		r := thrift{b: header[:n]}
		r.fields(func(int64, byte) {})
		require.Error(t, r.err, "%d bytes", n)
	}
}

func TestThrift_refuses(t *testing.T) {
	for want, f := range map[string]func(r *thrift){
		"kind 8, expected a number":      func(r *thrift) { r.int(thriftBinary) },
		"kind 5, expected text":          func(r *thrift) { r.bytes(thriftInt32) },
		"kind 5, expected true or false": func(r *thrift) { r.bool(thriftInt32) },
		"kind 5, expected a structure":   func(r *thrift) { r.structure(thriftInt32, nil) },
		"kind 5, expected a list":        func(r *thrift) { r.list(thriftInt32) },
		"of the unknown kind 14":         func(r *thrift) { r.skip(14) },
		"nested more than 24 deep":       func(r *thrift) { r.b = bytes.Repeat([]byte{0x1c}, 100); r.skip(thriftStruct) },
		"the header ends too early":      func(r *thrift) { r.b = []byte{0xf5, 0xff, 0xff, 0x7f}; r.list(thriftList) },
		"has more than 64 bits":          func(r *thrift) { r.b = bytes.Repeat([]byte{0xff}, 11); r.uvarint() },
	} {
		r := thrift{b: make([]byte, 4)}
		f(&r)
		require.ErrorContains(t, r.err, want)
		require.Zero(t, r.uvarint(), "nothing is read after an error")
	}
}
