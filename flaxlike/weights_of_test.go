package flaxlike_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
)

// A weighted metric is divided by the sum of the weights, in each of its forms, and in a padded batch too.
func TestMetrics_weighted(t *testing.T) {
	set, err := data.New(data.X([]float32{0, 0, 0, 0}, 4, 1), data.Y([]float32{1, 2, 3, 4}, 4, 1), data.Named("w", []float32{3, 1, 0, 0}, 4))
	require.NoError(t, err)
	off := func(y, o *graph.Node) *graph.Node { return graph.Abs(graph.Sub(y, o)) }
	for _, size := range []int{4, 3} { // 3: padded
		m := newModel(t, nn.Func(identity), flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("w"), flaxlike.WithBatchSize(size), flaxlike.WithMetrics(
			flaxlike.Metric{Name: "ones", Func: func(y, _ *graph.Node) *graph.Node { return graph.OnesLike(graph.Reshape(y, -1)) }, Weighted: true},
			flaxlike.Metric{Name: "func", Func: off, Weighted: true},
			flaxlike.Metric{Name: "plain", Func: off},
			flaxlike.Metric{Name: "value", Metric: metrics.MeanAbsoluteError(), Weighted: true},
			flaxlike.Metric{Name: "mae", Weighted: true}))
		found, err := m.Evaluate(t.Context(), set)
		require.NoError(t, err)
		for name, want := range map[string]float64{"ones": 1, "func": 1.25, "plain": 2.5, "value": 1.25, "mae": 1.25} {
			require.InDelta(t, want, found[name], 1e-6, name)
		}
	}
}

// Class weights count in weighted metrics in training, with sample weights, and not in an evaluation: Keras's figures.
func TestMetrics_weightedByClass(t *testing.T) {
	x := data.X([]float32{1, 0, 0, 1, 1, 0, 1, 0}, 4, 2) // its class is 0, 1, 0, 0
	set, err := data.New(x, data.Y([]int32{0, 0, 1, 0}, 4), data.Named("w", []float32{1, 1, 1, 2}, 4))
	require.NoError(t, err)
	hit := func(y, o *graph.Node) *graph.Node {
		return graph.ConvertDType(graph.Equal(y, graph.ArgMax(o, -1, y.DType())), o.DType())
	}
	idle := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		return graph.Add(x, graph.MulScalar(nn.Dense{Units: 2}.Apply(scope, x), 0))
	})
	for _, row := range []struct {
		options []flaxlike.Option
		want    float64 // of 10 for each of class 0, 1 for class 1
	}{
		{nil, 20.0 / 31},
		{[]flaxlike.Option{flaxlike.WithSampleWeights("w")}, 30.0 / 41},
	} {
		m := newModel(t, idle, append(row.options, flaxlike.WithLoss(sparse), flaxlike.WithClassWeights(map[int]float64{0: 10}), flaxlike.WithMetrics(
			flaxlike.Metric{Name: "accuracy", Weighted: true}, flaxlike.Metric{Name: "func", Func: hit, Weighted: true}, flaxlike.Metric{Name: "acc"}))...)
		h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{BatchSize: 4, Validation: set}))
		require.NoError(t, err)
		require.InDelta(t, row.want, series(t, h, "accuracy")[0], 1e-6)
		require.InDelta(t, row.want, series(t, h, "func")[0], 1e-6)
		require.InDelta(t, 0.5, series(t, h, "acc")[0], 1e-6)
		tested := 0.5
		if row.options != nil {
			tested = 3.0 / 5
		}
		require.InDelta(t, tested, series(t, h, "val_accuracy")[0], 1e-6)
	}
}
