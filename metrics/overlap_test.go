package metrics_test

import (
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestOverlap_cases(t *testing.T) {
	cases(t, []valued{
		{"scores with a label too large", metrics.FBeta(1, 3, metrics.Micro), inputs([]int32{0, 3}, []int32{0, 1}), []float64{nan}},
		{"scores without an example", metrics.FBeta(1, 2, metrics.Binary), batch{[]bool{false}, []any{[]int32{0}, []int32{0}}}, []float64{nan}},
		{"a class in neither has no part in the mean", metrics.MeanIoU(3), inputs([]int32{0, 1, 1}, []int32{0, 0, 1}), []float64{0.5}},
		{"a class in neither has 0", metrics.IoU(3, metrics.PerClass), inputs([]int32{0, 1, 1}, []int32{0, 0, 1}), []float64{0.5, 0.5, 0}},
		{"mean IoU without an example", metrics.MeanIoU(3), batch{false, []any{[]int32{0}, []int32{0}}}, []float64{nan}},
		{"mean IoU with a label too large", metrics.MeanIoU(2), inputs([]int32{0, 2}, []int32{0, 1}), []float64{nan}},
		{"F with recall counting four times", metrics.FBeta(2, 2, metrics.Binary), inputs([]int32{1, 1, 0, 0}, []int32{1, 0, 0, 0}), []float64{5. / 9}},
	})
}

func TestOverlap_refuses(t *testing.T) {
	refusals(t, []refused{
		{"binary of three", metrics.FBeta(1, 3, metrics.Binary), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: FBeta(1)(3, binary): unknown average over 3 classes"},
		{"an unknown average", metrics.FBeta(1, 3, 9), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: FBeta(1)(3, Average(9)): unknown average"},
		{"beta 0", metrics.FBeta(0, 2, metrics.Binary), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: FBeta: beta is 0, expected a positive number"},
	})
}
