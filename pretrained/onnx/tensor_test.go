package onnx

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func tensorOf(t *testing.T, kind int32, dims ...int64) message {
	m, err := decode([]byte{7<<3 | 2, 0}) // an empty graph
	require.NoError(t, err)
	w := m.mutable("graph").add("initializer")
	w.set("name", "w")
	w.set("data_type", kind)
	for _, dim := range dims {
		w.addNumber("dims", dim)
	}
	return w
}

// The elements are bytes, whatever list the file has them in.
func TestNormalize(t *testing.T) {
	w := tensorOf(t, single, 2)
	for _, x := range []float32{1, -0.5} {
		w.Mutable(w.field("float_data")).List().Append(protoreflect.ValueOfFloat32(x))
	}
	require.NoError(t, w.normalize())
	want := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), math.Float32bits(-0.5))
	require.Equal(t, want, w.bytes("raw_data"))
	require.False(t, w.has("float_data"))
	require.Equal(t, []int{2}, w.dims())
	require.NoError(t, w.normalize(), "again")

	b := tensorOf(t, bools, 3)
	b.set("raw_data", []byte{0, 7, 1})
	require.NoError(t, b.normalize())
	require.Equal(t, []byte{0, 1, 1}, b.bytes("raw_data"))
}

func TestNormalize_refuses(t *testing.T) {
	for want, w := range map[string]message{
		`the tensor "w" has 0 bytes, expected 8 for (Float32)[2]`: tensorOf(t, single, 2),
		`has the data type 99 of ONNX, expected one of `:          tensorOf(t, 99, 2),
		"has the shape [-1], expected at most":                    tensorOf(t, single, -1),
		"has the shape [1099511627776 1099511627776]":             tensorOf(t, single, 1<<40, 1<<40),
	} {
		require.ErrorContains(t, w.normalize(), want)
	}
}
