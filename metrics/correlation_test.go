package metrics_test

import (
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestCorrelation_cases(t *testing.T) {
	cases(t, []valued{
		{"correlation upside down", metrics.Pearson(1), inputs([]float32{1, 2, 3}, []float32{3, 2, 1}), []float64{-1}},
		{"correlation of equals", metrics.Pearson(1), inputs([]float32{1, 2, 3}, []float32{2, 2, 2}), []float64{nan}},
		{"concordance of twice as much", metrics.Concordance(1), inputs([]float32{1, 2, 3}, []float32{2, 4, 6}), []float64{4. / 11}},
	})
}

func TestCorrelation_refuses(t *testing.T) {
	refusals(t, []refused{
		{"correlation of other shapes", metrics.Pearson(1), inputs([]float32{1, 1}, []float32{1}), "metrics: Pearson: targets (Float32)[2] and predictions (Float32)[1] must have the same dimensions"},
	})
}
