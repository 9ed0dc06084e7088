package metrics_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

func TestWeights_refuses(t *testing.T) {
	scores := [][]float32{{0.1, 0.7}, {0.5, 0.5}}
	refusals(t, []refused{
		{"weights too long", metrics.Mean(), batch{[]float32{1, 1, 1}, []any{scores}}, "metrics: Mean: weights (Float32)[3] do not fit examples of dimensions [2 2]"},
		{"weights of more axes", metrics.Accuracy(), batch{scores, []any{[]int32{1, 1}, scores}}, "weights (Float32)[2, 2] do not fit examples of dimensions [2]"},
	})
}

func TestB87_meanAndDeviationOfTheSelected(t *testing.T) {
	line := []float32{1, 2, 3, 6}
	square := [][]float32{{1, 2}, {3, 4}, {5, 9}}
	cube := [][][]float32{{{1, 2}, {3, 4}}, {{5, 6}, {7, 9}}}
	rows := []struct {
		name       string
		values     any
		mask       any
		mean, wide float64
	}{
		{"a scalar", float32(3), nil, 3, 0},
		{"integers", []int32{1, 2, 6}, nil, 3, math.Sqrt(14. / 3)},
		{"truth values", []bool{true, false, true, true}, nil, 0.75, math.Sqrt(3. / 16)},
		{"no mask", line, nil, 3, math.Sqrt(3.5)},
		{"a mask of examples", line, []bool{true, false, false, true}, 3.5, 2.5},
		{"nothing selected", line, []bool{false, false, false, false}, nan, nan},
		{"weights", line, []float32{0.5, 0, 1.5, 0}, 2.5, math.Sqrt(0.75)},
		{"integer weights", line, []int64{1, 0, 3, 0}, 2.5, math.Sqrt(0.75)},
		{"one weight for all", line, float32(2), 3, math.Sqrt(3.5)},
		{"a mask of rows", square, []bool{true, false, true}, 4.25, math.Sqrt(9.6875)},
		{"a mask of elements", square, [][]bool{{true, false}, {true, true}, {false, false}}, 8. / 3, math.Sqrt(14. / 9)},
		{"a mask of rows, three axes", cube, []bool{false, true}, 6.75, math.Sqrt(2.1875)},
		{"a mask of two axes of three", cube, [][]bool{{true, false}, {false, true}}, 4.75, math.Sqrt(171./4 - 4.75*4.75 - 9)},
	}
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				b := batch{row.mask, []any{row.values}}
				mean, err := measure(r, metrics.Mean(), b)
				require.NoError(t, err)
				near(t, []float64{row.mean}, mean, 1e-12)
				wide, err := measure(r, metrics.StandardDeviation(), b)
				require.NoError(t, err)
				near(t, []float64{row.wide}, wide, 1e-12)
			})
		}
		t.Logf("B87: %d shapes and masks", len(rows))
	})
}
