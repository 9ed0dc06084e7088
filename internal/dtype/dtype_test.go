//lazo:norace
package dtype_test

import (
	"reflect"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// The numbers are GoMLX's and PJRT's, and files have each type by its name.
func TestTypes(t *testing.T) {
	inFiles := 0
	for d := dtype.Bool; d < dtype.Count; d++ {
		theirs := dtypes.DType(d)
		require.Equal(t, d, dtype.Named(theirs.String()), "%v", d)
		require.Equal(t, theirs.Size(), pjrt.DType(d).Size(), "%v", d)
		require.Equal(t, theirs.GoType().Size(), uintptr(theirs.Size()))
		if d != dtype.Float16 && d != dtype.BFloat16 { // types of GoMLX's own
			require.Equal(t, theirs.GoType().Name(), d.String())
		}
		if d.InFile() == "" {
			continue
		}
		inFiles++
		file, err := safetensors.ParseDType(d.InFile())
		require.NoError(t, err)
		require.Equal(t, 8*theirs.Size(), file.Bits(), "%v", d)
		require.Equal(t, d, dtype.InFiles(d.InFile()))
	}
	require.Equal(t, 14, inFiles)
	for _, none := range []dtype.Type{-1, 0, dtype.Count, 257} {
		require.Empty(t, none.String())
		require.Empty(t, none.InFile())
	}
	require.Zero(t, dtype.Named(""))
	require.Zero(t, dtype.InFiles(""))
}

func TestOf(t *testing.T) {
	type own []float32
	for _, flat := range []any{
		[]bool{true}, []int8{1}, []int16{1}, []int32{1}, []int64{1}, []uint8{1}, []uint16{1}, []uint32{1}, []uint64{1}, []float32{1}, []float64{1},
	} {
		d, n := dtype.Of(flat)
		require.Equal(t, 1, n)
		require.Equal(t, dtypes.FromGoType(reflect.TypeOf(flat).Elem()), dtypes.DType(d), "%T", flat)
	}
	for _, flat := range []any{nil, 1, "1", own{1}, []int{1}, []complex64{1}, [1]float32{}} {
		d, n := dtype.Of(flat)
		require.Zero(t, d)
		require.Zero(t, n)
	}
}
