package metrics_test

import (
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestSeveral_cases(t *testing.T) {
	const third = 1. / 3
	cases(t, []valued{
		{"two thresholds", metrics.AtThresholds(metrics.Recall(2, metrics.Binary), 0.3, 0.7), inputs([]bool{true, true, false}, []float32{0.5, 0.9, 0.8}), []float64{1, 0.5}},
		{"thresholds of several labels", metrics.AtThresholds(metrics.MultiLabel(metrics.Precision(2, metrics.Micro)), 0.3, 0.7), batch{[]float32{1, 2}, []any{[][]float32{{1, 0}, {1, 1}}, [][]float32{{0.5, 0.9}, {0.8, 0.2}}}}, []float64{0.75, 2 * third}},
		{"thresholds of a soft label", metrics.AtThresholds(metrics.Recall(2, metrics.Binary), 0.5), inputs([]float32{1, 0.7}, []float32{0.5, 0.9}), []float64{nan}},
		{"each class by its name", metrics.Each(metrics.Recall(3, metrics.PerClass), "a", "b", "c"), inputs([]int32{0, 1, 1}, []int32{0, 1, 2}), []float64{1, 0.5, 0}},
	})
}

func TestSeveral_refuses(t *testing.T) {
	refusals(t, []refused{
		{"no threshold", metrics.AtThresholds(metrics.Recall(2, metrics.Binary)), inputs([]int32{1}, []float32{1}), "metrics: AtThresholds: expected at least 1 threshold, and labels"},
		{"a threshold twice", metrics.AtThresholds(metrics.Recall(2, metrics.Binary), 0.5, 0.5), inputs([]int32{1}, []float32{1}), `entry 1 has the name "0.5": expected a name that is not empty and that no other entry has`},
		{"another number of names", metrics.Each(metrics.Recall(2, metrics.PerClass), "a"), inputs([]int32{1}, []int32{1}), `metrics: Each: the value is (Float64)[2], expected an array of 1 numbers, as many as the names ["a"]`},
	})
}
