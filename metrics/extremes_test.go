package metrics_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

// The last batch that has an example; for several devices the mean.
func TestLast(t *testing.T) {
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		g := newGauge(t, r, metrics.Last())
		require.True(t, math.IsNaN(g.values(t, g.empty(t))[""][0]))
		here := g.add(t, g.empty(t), inputs([]float32{1, 2, 3}), inputs([]float32{5}))
		there := g.add(t, g.empty(t), inputs([]float32{7, 8, 9}))
		require.EqualValues(t, 5, g.values(t, here)[""][0])
		require.EqualValues(t, 5, g.values(t, g.add(t, here, batch{[]bool{false}, []any{[]float32{9}}}))[""][0])
		require.EqualValues(t, 8, g.values(t, join(t, g.merge, here, there))[""][0])
		require.EqualValues(t, (5+7+8+9)/4., g.values(t, join(t, g.reduce, here, there))[""][0])
	})
}

func TestExtremes_cases(t *testing.T) {
	cases(t, []valued{
		{"min", metrics.Min(), batch{[]bool{true, false, true}, []any{[]float32{3, 1, 2}}}, []float64{2}},
		{"min of nothing", metrics.Min(), batch{false, []any{[]float32{3, 1, 2}}}, []float64{math.Inf(1)}},
		{"max", metrics.Max(), inputs([]int32{3, 1, 2}), []float64{3}},
		{"max of nothing", metrics.Max(), batch{false, []any{[]float32{3, 1, 2}}}, []float64{math.Inf(-1)}},
	})
}
