package metrics_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

func TestR2_cases(t *testing.T) {
	cases(t, []valued{
		{"R2 of equal targets", metrics.R2(1), inputs([]float32{2, 2}, []float32{2, 3}), []float64{math.Inf(-1)}},
		{"R2 of equal targets, all met", metrics.R2(1), inputs([]float32{2, 2}, []float32{2, 2}), []float64{nan}},
	})
}

func TestR2_refuses(t *testing.T) {
	refusals(t, []refused{
		{"targets of another shape", metrics.R2(1), inputs([]float32{1, 1}, []float32{1}), "metrics: R2: targets (Float32)[2] and predictions (Float32)[1] must have the same dimensions"},
		{"columns that were not said", metrics.R2(1), inputs([][]float32{{1, 1}}, [][]float32{{1, 1}}), "metrics: R2(1): the targets (Float32)[1, 2] have 2 columns, the numbers of the last axis: expected R2(2)"},
	})
}

// Values over several columns are the mean over the columns, as for scikit-learn's and Keras's R², and weights [batch,
// 1] equal [batch].
func TestS22_columns(t *testing.T) {
	y, p := [][]float64{{1, 10}, {2, 20}, {3, 60}, {6, 30}}, [][]float64{{1, 12}, {2.5, 18}, {2, 50}, {6.5, 33}}
	both := func(weights any) batch { return batch{weights: weights, inputs: []any{y, p}} }
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		for _, row := range []struct {
			metric metrics.Metric
			batch  batch
			want   float64
		}{
			{metrics.R2(2), both(nil), 0.9046428571428571},
			{metrics.R2(2), both([]float64{1, 0, 2, 1}), 0.8525980392156862},
			{metrics.R2(2), both([][]float64{{1}, {0}, {2}, {1}}), 0.8525980392156862},
			{metrics.Pearson(2), both(nil), 0.9699347120114175},
			{metrics.Concordance(2), both(nil), 0.9504987765857331},
		} {
			g := newGauge(t, r, row.metric)
			require.InDelta(t, row.want, g.values(t, g.add(t, g.empty(t), row.batch))[""][0], 1e-12)
		}
	})
}
