package hlo

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
)

func TestCheckShape(t *testing.T) {
	require.NoError(t, checkShape(shapes.Make(dtypes.BFloat16, 2, 0)))
	for want, s := range map[string]shapes.Shape{
		"is a tuple, expected an array":               {DType: dtypes.Float32, TupleShapes: []shapes.Shape{shapes.Make(dtypes.Float32)}},
		"dimensions [-5], expected none below 0":      {DType: dtypes.Float32, Dimensions: []int{-5}},
		"has a dimension that is not known":           {DType: dtypes.Float32, Dimensions: []int{shapes.DynamicDim}},
		"type of elements InvalidDType, expected one": {DType: dtypes.InvalidDType},
	} {
		require.ErrorContains(t, checkShape(s), want)
	}
}

func TestDType_limits(t *testing.T) {
	for of, want := range map[dtypes.DType][2]any{
		dtypes.Float16: {math.Inf(-1), math.Inf(1)}, dtypes.Int8: {int64(-128), int64(127)}, dtypes.Int64: {int64(math.MinInt64), int64(math.MaxInt64)},
		dtypes.Uint32: {int64(0), int64(-1)}, // all bits
	} {
		require.Equal(t, want, [2]any{lowest(of), highest(of)}, of.String())
	}
	require.Equal(t, shapes.Make(dtypes.Int32, 5), placeShape([]int{5}))
	require.Equal(t, shapes.Make(dtypes.Int64, 5, 1<<31), placeShape([]int{5, 1 << 31}))
}
