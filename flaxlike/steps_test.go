package flaxlike_test

import (
	"context"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
)

// penalised has a loss and a metric of its own.
func penalised(scope *model.Scope, x *graph.Node) *graph.Node {
	y := nn.Dense{Units: 1}.Apply(scope, x)
	managed.AddLoss("penalty", graph.MulScalar(graph.ReduceAllMean(graph.Square(y)), 0.01))
	managed.AddMetric("size", graph.ReduceAllMax(y))
	return y
}

// B09: a mean avg_<loss> comes by itself for the declared loss and for the one inside of the network, in tests too.
func TestB09_averagesOfAllLosses(t *testing.T) {
	m := newModel(t, nn.Func(penalised), flaxlike.WithLoss("mse"))
	set := line(t, 64)
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Validation: set}))
	require.NoError(t, err)
	for _, name := range []string{"loss", "penalty", "size", "val_loss", "val_penalty", "val_size"} { // the means, in Fit
		require.Len(t, series(t, h, name), 1, name)
	}
	_, logs, err := m.TestStep(t.Context(), first(t, set, 32))
	require.NoError(t, err)
	for _, name := range []string{"loss", "avg_loss", "penalty", "avg_penalty", "size", "avg_size"} {
		require.NotZero(t, float(t, logs, name), name)
	}
	t.Log("B09: 12 entries")
}

// twoHeads has two inputs and two outputs.
func twoHeads(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
	h := graph.Concatenate([]*graph.Node{input("a"), input("b")}, -1)
	return map[string]*graph.Node{"class": nn.Dense{Units: 3}.Apply(scope.In("class"), h), "size": nn.Dense{Units: 1}.Apply(scope.In("size"), h)}
}

func TestInputsAndOutputsByName(t *testing.T) {
	x := sorted(t, 96).Fields()
	size := make([]float32, 96)
	for i := range size {
		size[i] = float32(i % 5)
	}
	set, err := data.New(data.Field{Name: "a", Array: x[0].Array}, data.Field{Name: "b", Array: x[0].Array},
		data.Field{Name: "class", Array: x[1].Array}, data.Named("size", size, 96))
	require.NoError(t, err)
	m := newModel(t, flaxlike.Functional(twoHeads),
		flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "class"}, flaxlike.Loss{Name: "mse", Output: "size", Weight: 0.5}),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "accuracy", Output: "class"}, flaxlike.Metric{Name: "mse", Output: "size"}), flaxlike.WithLearningRate(0.03))
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 40, Validation: set}))
	require.NoError(t, err)
	found, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, found["class_loss"]+0.5*found["size_loss"], found["loss"], 1e-6, "the sum")
	require.InDelta(t, found["size_mse"], found["size_loss"], 1e-5, "before its weight")
	require.InDelta(t, series(t, h, "val_loss")[39], found["loss"], 1e-6)
	require.Greater(t, found["class_accuracy"], 0.9)
	out, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, []int{96, 3}, output(t, out, "class").Dims)
	require.Equal(t, []int{96, 1}, output(t, out, "size").Dims)
}

// Weights of 0 take examples out of the loss, in the average too; and out of a metric only if it is weighted.
func TestSampleWeights(t *testing.T) {
	weights := make([]float32, 32)
	for i := range 8 {
		weights[i] = 2
	}
	set := line(t, 32, data.Named("weight", weights, 32))
	part, err := line(t, 32).Slice(0, 8)
	require.NoError(t, err)
	options := []flaxlike.Option{flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mse")}
	evaluate := func(set *data.Set, options ...flaxlike.Option) map[string]float64 {
		found, err := newModel(t, nn.Dense{Units: 1}, options...).Evaluate(t.Context(), set)
		require.NoError(t, err)
		return found
	}
	all, few := evaluate(set, options...), evaluate(part, options...)
	weighed := evaluate(set, append(options, flaxlike.WithSampleWeights("weight"),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "weighted", Metric: metrics.MeanSquaredError(), Weighted: true}))...)
	require.InDelta(t, 2*8*few["loss"]/32, weighed["loss"], 1e-5, "divided by the number of examples, as in Keras")
	require.InDelta(t, all["mse"], weighed["mse"], 1e-6)
	require.InDelta(t, few["mse"], weighed["weighted"], 1e-6)
}

// New opens a runtime of its own, and Close closes it.
func TestRuntimeByDefault(t *testing.T) {
	m, err := flaxlike.New(context.Background(), nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	require.NoError(t, err)
	_, err = m.Fit(t.Context(), line(t, 64), quiet(flaxlike.Fit{}))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Evaluate(t.Context(), line(t, 64))
	require.ErrorIs(t, err, managed.ErrClosed)
}
