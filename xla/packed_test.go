package xla_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// Elements of less than a byte keep their order and bits on the way to the device and back.
func TestBuffers_packed(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		dtype  dtypes.DType
		n      int
		packed []byte
	}{
		{dtypes.Int4, 3, []byte{0x21, 0x0f}},
		{dtypes.Uint4, 4, []byte{0x21, 0xfe}},
		{dtypes.Int2, 5, []byte{0b11100100, 0b10}},
		{dtypes.Uint2, 4, []byte{0b00011011}},
		{dtypes.Int4, 0, []byte{}},
	} {
		shape := shapes.Make(row.dtype, row.n)
		b, err := r.BufferFromFlatData(0, row.packed, shape)
		require.NoError(t, err, shape)
		got := make([]byte, len(row.packed))
		require.NoError(t, b.ToFlatData(got), shape)
		require.Equal(t, row.packed, got, shape)
		require.ErrorContains(t, b.ToFlatData(make([]byte, len(got)+1)), "bytes for an array")
		require.ErrorContains(t, b.ToFlatData(make([]int8, len(got))), "expected a []uint8")
		require.NoError(t, b.Finalize())
		_, err = r.BufferFromFlatData(0, append(row.packed, 0), shape)
		require.ErrorContains(t, err, "bytes for an array")
	}
}
