package metrics_test

import (
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestScores_cases(t *testing.T) {
	several := inputs([][]int32{{1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 0}, {1, 1, 0}}, [][]int32{{1, 0, 1}, {0, 1, 0}, {0, 1, 0}, {1, 0, 0}, {1, 0, 0}})
	const third = 1. / 3
	cases(t, []valued{
		{"a class never predicted", metrics.Precision(3, metrics.PerClass), inputs([]int32{0, 1, 2}, []int32{0, 1, 1}), []float64{1, 0.5, 0}},
		{"a class never seen", metrics.Recall(3, metrics.Macro), inputs([]int32{0, 1, 1}, []int32{0, 1, 2}), []float64{0.5}},
		{"specificity", metrics.Specificity(2, metrics.Binary), inputs([]int32{0, 0, 0, 1}, []int32{0, 1, 0, 0}), []float64{2 * third}},
		{"specificity, micro", metrics.Specificity(2, metrics.Micro), inputs([]int32{0, 0, 0, 1}, []int32{0, 1, 0, 0}), []float64{0.5}},
		// for several labels: scikit-learn's, zero_division=0
		{"several labels, macro", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.Macro)), several, []float64{0.48888889}},
		{"several labels, micro", metrics.MultiLabel(metrics.Precision(3, metrics.Micro)), several, []float64{2. / 3}},
		{"several labels, specificity", metrics.MultiLabel(metrics.Specificity(3, metrics.PerClass)), several, []float64{0.5, 1, 0.8}},
		{"several labels, weighted", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.Weighted)), several, []float64{0.73333333}},
		{"several labels, weights", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.PerClass)), batch{[]float32{1, 2, 1, 1, 3}, several.inputs}, []float64{0.72727273, 0.66666667, 0}},
		{"several labels, IoU", metrics.MultiLabel(metrics.MeanIoU(3)), several, []float64{0.38888889}},
		{"several labels, none of them", metrics.MultiLabel(metrics.Recall(2, metrics.Macro)), inputs([][]int32{{0, 0}}, [][]int32{{0, 1}}), []float64{0}},
		{"several labels, no example", metrics.MultiLabel(metrics.Recall(2, metrics.Macro)), batch{[]bool{false}, []any{[][]int32{{1, 0}}, [][]int32{{-1, 1}}}}, []float64{nan}},
		{"several labels, a NaN", metrics.MultiLabel(metrics.Recall(2, metrics.Macro)), inputs([][]int32{{1, 0}}, [][]int32{{-1, 1}}), []float64{nan}},
	})
}

func TestScores_refuses(t *testing.T) {
	refusals(t, []refused{
		{"one class", metrics.Recall(1, metrics.Micro), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: Recall(1, micro): expected at least 2 classes"},
		{"negative classes", metrics.Recall(-1, metrics.Micro), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: Recall(-1, micro): expected at least 2 classes"},
		{"several labels of no classes", metrics.MultiLabel(metrics.Accuracy()), inputs([]int32{0}, []int32{0}), "is not a metric that scores classes"},
		{"several labels of other classes", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.Macro)), inputs([][]int32{{0, 1}}, [][]int32{{0, 1}}), "metrics: MultiLabel(FBeta(1)(3, macro)): labels (Int32)[1, 2]"},
	})
}
