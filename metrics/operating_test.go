package metrics_test

import (
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestBestAt_cases(t *testing.T) {
	cases(t, []valued{
		{"no threshold has it", metrics.BestAt("recall", "precision", 0.9, 200), inputs([]int32{0, 1}, []float32{0.9, 0.1}), []float64{0}},
		{"all are taken", metrics.BestAt("precision", "recall", 1, 200), inputs([]int32{0, 1, 1, 1}, []float32{0, 0, 0, 0}), []float64{0.75}},
		{"a tenth of ten", metrics.BestAt("recall", "specificity", 0.1, 3), inputs([]int32{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []float32{0.5, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}), []float64{1}},
		{"precision at recall without label 1", metrics.BestAt("precision", "recall", 0.5, 200), inputs([]int32{0}, []float32{0.5}), []float64{nan}},
		{"recall at precision without label 0", metrics.BestAt("recall", "precision", 0.5, 200), inputs([]int32{1}, []float32{0.5}), []float64{1}},
		{"specificity at sensitivity without label 0", metrics.BestAt("specificity", "recall", 0.5, 200), inputs([]int32{1}, []float32{0.5}), []float64{nan}},
		{"a NaN in an operating point", metrics.BestAt("precision", "recall", 0.5, 200), inputs([]int32{0, 1}, []float32{0.1, float32(nan)}), []float64{nan}},
	})
}

func TestBestAt_refuses(t *testing.T) {
	refusals(t, []refused{
		{"a share above 1", metrics.BestAt("precision", "recall", 1.5, 200), inputs([]int32{1, 1}, []float32{1, 1}), "metrics: BestAt(precision, recall, 1.5)(200): expected a share from 0 to 1"},
	})
}
