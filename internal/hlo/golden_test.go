package hlo_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
)

// Programs for which a naive lowering gives wrong results on XLA's CPU or ends the process.
func TestFaultsOfXLA(t *testing.T) {
	d := open(t)
	constant := func(f compute.Function, a array) compute.Value {
		return must1(t)(f.Constant(a.flat, a.shape.Dimensions...))
	}
	for _, row := range []struct {
		name  string
		build func(f compute.Function) (compute.Value, error)
		want  any
	}{
		{"a dot of constants with batch axes out of order", func(f compute.Function) (compute.Value, error) {
			x := of([]int{3, 3}, int32(1), 2, 3, 4, 5, 6, 7, 8, 9)
			return f.DotGeneral(constant(f, x), nil, []int{1, 0}, constant(f, x), nil, []int{1, 0}, compute.DotGeneralConfig{})
		}, []int32{1, 16, 49, 4, 25, 64, 9, 36, 81}},
		{"leading zeros of a constant below 0", func(f compute.Function) (compute.Value, error) {
			return f.Clz(constant(f, of([]int{2}, int16(-64), 15)))
		}, []int16{0, 12}},
		{"total order of a NaN", func(f compute.Function) (compute.Value, error) {
			return f.GreaterOrEqualTotalOrder(constant(f, of([]int{2}, math.NaN(), 1)), constant(f, of(nil, 2.0)))
		}, []bool{true, false}},
		{"a complex constant to reals", func(f compute.Function) (compute.Value, error) {
			return f.ConvertDType(constant(f, of([]int{2}, complex64(3+4i), 5)), dtypes.Float64)
		}, []float64{3, 5}},
		{"a complex constant to truth", func(f compute.Function) (compute.Value, error) {
			return f.ConvertDType(constant(f, of([]int{3}, complex64(4i), 0, 1)), dtypes.Bool)
		}, []bool{true, false, true}},
		{"the length of a complex iota", func(f compute.Function) (compute.Value, error) {
			return f.Abs(must1(t)(f.Iota(shapes.Make(dtypes.Complex64, 3), 0)))
		}, []float32{0, 1, 2}},
		{"base dilations that are not the window's (go-xla)", func(f compute.Function) (compute.Value, error) {
			return f.ReduceWindow(constant(f, of([]int{3}, float32(1), 2, 3)), compute.ReduceOpSum, []int{1}, []int{1}, []int{2}, []int{1}, nil)
		}, []float32{1, 0, 2, 0, 3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := run(d, nil, func(f compute.Function, _ []compute.Value) ([]compute.Value, error) { return one(row.build(f)) })
			require.NoError(t, err)
			require.Equal(t, row.want, got[0].flat)
		})
	}
}

// A module counts its operations.
func TestOpsCounted(t *testing.T) {
	m := stepModule(t)
	require.Equal(t, 5, m.Ops[compute.OpTypeParameter])
	require.Equal(t, 2, m.Ops[compute.OpTypeDotGeneral])
	require.Equal(t, 1, m.Ops[compute.OpTypeRNGBitGenerator])
	require.Zero(t, m.Ops[compute.OpTypeConvGeneral])
	require.Equal(t, "random", m.Parameters[3].Name)
	require.Equal(t, 1, m.Devices.Count())
}
