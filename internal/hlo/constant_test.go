package hlo_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// A constant has its bits, short or long, in each form of the text.
func TestConstant_isExact(t *testing.T) {
	long := make([]float64, 40)
	for i := range long {
		long[i] = math.Nextafter(1/float64(i+3), 2)
	}
	infinite := complex(float32(math.Inf(1)), -1.5)
	for name, row := range map[string]struct {
		flat any
		dims []int
	}{
		"scalar": {[]float32{0.1}, nil}, "short": {[]float64{math.Pi, -0.1, math.SmallestNonzeroFloat64 * 0x1p60}, []int{3}}, "long": {long, []int{5, 8}},
		"integers": {[]int64{math.MinInt64, math.MaxInt64}, []int{2}}, "bools": {make([]bool, 40), []int{40}}, "infinite parts": {[]complex64{infinite}, []int{1}},
	} {
		got, err := run(open(t), nil, func(f compute.Function, _ []compute.Value) ([]compute.Value, error) {
			return one(f.Constant(row.flat, row.dims...))
		})
		require.NoError(t, err, name)
		require.Equal(t, row.flat, got[0].flat, name)
		require.Equal(t, len(row.dims), got[0].shape.Rank(), name)
	}
}

func TestConstant_refuses(t *testing.T) {
	b := programOf(hlo.New("constants", nil))
	for want, row := range map[string]struct {
		flat any
		dims []int
	}{
		"values of type int, expected a slice":                             {3, nil},
		"2 values for dimensions [3], which have room for 3":               {[]float32{1, 2}, []int{3}},
		"values of type []string: type of elements":                        {[]string{"a"}, []int{1}},
		"values of type []float32: dimensions [-2], expected none below 0": {[]float32{1}, []int{-2}},
	} {
		_, err := b.Constant(row.flat, row.dims...)
		require.ErrorContains(t, err, want)
	}
}
