package metrics_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/metrics"
)

func TestClasses_cases(t *testing.T) {
	scores := [][]float32{{0.1, 0.7, 0.2}, {0.5, 0.5, 0}, {0, 1, 2}}
	cases(t, []valued{
		{"confusion", metrics.ConfusionMatrix(3), batch{[]float32{1, 0.5, 2}, []any{[]int32{1, 1, 2}, scores}}, []float64{0, 0, 0, 0.5, 1, 0, 0, 0, 2}},
		{"confusion with a label too large", metrics.ConfusionMatrix(2), inputs([]int32{1, 2}, []int32{1, 1}), []float64{nan, nan, nan, nan}},
		{"confusion with a prediction too large", metrics.ConfusionMatrix(2), inputs([]int32{1, 1}, []int32{1, 2}), []float64{nan, nan, nan, nan}},
		{"the highest of equals", highest(2), inputs([][]float32{{1, 3, 3, 3}, {0, -1, -2, -1}}), []float64{0, 1, 1, 0, 1, 1, 0, 0}},
		{"the highest of a NaN", highest(1), inputs([][]float32{{1, 3, float32(nan), 3}}), []float64{-1, -1, -1, -1}},
		{"threshold", metrics.MapInputs(metrics.Sum(), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{metrics.Threshold(in[0], 0.5)}
		}), inputs([]float32{0.5, 0.6, 0.1, float32(nan)}), []float64{0}},
	})
}

func TestClasses_refuses(t *testing.T) {
	scores := [][]float32{{0.1, 0.7}, {0.5, 0.5}}
	refusals(t, []refused{
		{"other classes", metrics.ConfusionMatrix(3), inputs([]int32{1, 1}, scores), "metrics: ConfusionMatrix(3): expected at least 2 classes, and the same number in scores"},
		{"the highest of too few", highest(3), inputs([][]float32{{1, 2}}), "metrics: Highest(3): expected scores, floats [examples…, classes], and a number from 1 to that of the classes, got (Float32)[1, 2]"},
	})
}

// highest shows the classes that Highest makes.
func highest(k int) metrics.Metric { return shown{k} }

type shown struct{ k int }

func (shown) Accumulators() []metrics.Accumulator { return nil }

func (shown) Merge(a, _ []*graph.Node) []*graph.Node { return a }

func (shown) Compute(acc []*graph.Node) []metrics.Value { return []metrics.Value{{Node: acc[0]}} }

func (s shown) Update(_ []*graph.Node, _ *graph.Node, in ...*graph.Node) []*graph.Node {
	return []*graph.Node{graph.ConvertDType(metrics.Highest(in[0], s.k), dtypes.Float64)}
}
