package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

func TestSums_cases(t *testing.T) {
	cases(t, []valued{
		{"sum", metrics.Sum(), batch{[]float32{0.5, 2, 0}, []any{[]float32{2, 1, float32(nan)}}}, []float64{3}},
		{"a NaN that counts", metrics.Mean(), inputs([]float32{1, float32(nan)}), []float64{nan}},
	})
}

func TestSums_refuses(t *testing.T) {
	refusals(t, []refused{
		{"complex numbers", metrics.Mean(), inputs([]complex64{1}), "metrics: Mean: the values must be real numbers"},
	})
}

// A float32 count would stop at 16,777,216.
func TestMetrics_countTo1e8(t *testing.T) {
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		c := together{metrics.Collection{
			{Name: "sum", Metric: metrics.Sum(), Inputs: []string{"ones"}},
			{Name: "matrix", Metric: metrics.ConfusionMatrix(2), Inputs: []string{"labels", "labels"}},
			{Name: "deviation", Metric: metrics.StandardDeviation(), Inputs: []string{"wide"}},
		}, []string{"ones", "labels", "wide"}}
		g := newGauge(t, r, c)
		b := inputs([]float32{1, 1}, []int32{1, 1}, []float32{10000 - 0.125, 10000 + 0.125})
		one := g.add(t, g.empty(t), b)
		many := one
		for range 26 {
			many = join(t, g.merge, many, many)
		}
		v := g.values(t, join(t, g.merge, many, one))
		require.Equal(t, []float64{1<<27 + 2}, v["sum"])
		require.Equal(t, []float64{0, 0, 0, 1<<27 + 2}, v["matrix"])
		require.InDelta(t, 0.125, v["deviation"][0], 1e-12)
		t.Logf("%.0f examples counted, 10,000 ± 0.125 is ± %.15f", v["sum"][0], v["deviation"][0])
	})
}
