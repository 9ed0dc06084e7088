package metrics_test

import (
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestAUC_cases(t *testing.T) {
	cases(t, []valued{
		{"a perfect curve", metrics.AUC(200), inputs([]int32{0, 1, 0, 1}, []float32{0, 0.9, 0.1, 1}), []float64{1}},
		{"a curve upside down", metrics.AUC(200), inputs([]bool{true, false}, []float32{0.2, 0.9}), []float64{0}},
		{"a curve of several labels, all cells pooled", metrics.AUC(200), inputs([][]int32{{1, 1}, {0, 0}}, [][]float32{{0.3, 0.9}, {0.1, 0.7}}), []float64{0.75}},
		{"an average precision of several labels, all cells pooled", metrics.AveragePrecision(200), inputs([][]int32{{1, 1}, {0, 0}}, [][]float32{{0.3, 0.9}, {0.1, 0.7}}), []float64{5. / 6}},
		{"a curve of equals", metrics.AUC(200), inputs([]float32{0, 1}, []float32{0.5, 0.5}), []float64{0.5}},
		{"a curve of one label", metrics.AUC(200), inputs([]int32{1, 1}, []float32{0.1, 0.5}), []float64{nan}},
		{"a soft label", metrics.AUC(200), inputs([]float32{0, 0.5}, []float32{0.1, 0.5}), []float64{nan}},
		{"a logit for a probability", metrics.AUC(200), inputs([]int32{0, 1}, []float32{0.1, 1.5}), []float64{nan}},
		{"a NaN in a curve", metrics.AUC(200), inputs([]int32{0, 1}, []float32{0.1, float32(nan)}), []float64{nan}},
		{"average precision without label 0", metrics.AveragePrecision(200), inputs([]int32{1, 1}, []float32{0.1, 0.5}), []float64{1}},
		{"average precision without label 1", metrics.AveragePrecision(200), inputs([]int32{0, 0}, []float32{0.1, 0.5}), []float64{nan}},
	})
}

func TestAUC_refuses(t *testing.T) {
	refusals(t, []refused{
		{"one threshold", metrics.AUC(1), inputs([]int32{1, 1}, []float32{1, 1}), "metrics: AUC(1): expected at least 2 thresholds"},
		{"a curve of classes", metrics.AUC(9), inputs([]int32{1, 1}, []int32{1, 1}), "expected at least 2 thresholds, and labels and floating-point predictions"},
	})
}
