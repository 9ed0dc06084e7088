package flaxlike_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/train"
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

// loss is the mean over all steps of the epoch: that of the same steps one by one.
func TestAverageIsOfTheEpoch(t *testing.T) {
	set, made := line(t, 128), func() *flaxlike.Model { return newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse")) }
	h, err := made().Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2}))
	require.NoError(t, err)
	each, err := train.Of[*flaxlike.Model]().Run(t.Context(), made(), set.Batches(32, data.Shuffle(0)), loop.Until(loop.Epochs(2)))
	require.NoError(t, err)
	steps, epochs := series(t, each.History, "loss"), series(t, h, "loss")
	require.Len(t, steps, 8)
	for e := range 2 {
		mean := (steps[4*e] + steps[4*e+1] + steps[4*e+2] + steps[4*e+3]) / 4
		require.InDelta(t, mean, epochs[e], 1e-5)
	}
}

// R15: a row of the history has the means over its epoch's examples: of the sum of the losses, of each before its
// weight, of custom figures and of those that the network reports; in training and in a test.
func TestR15_rowsHaveTheMeansOfTheEpoch(t *testing.T) {
	x := sorted(t, 70).Fields() // 4 batches of 16, and one of 6
	size := make([]float32, 70)
	for i := range size {
		size[i] = float32(i)
	}
	set := must.M1(data.New(data.Field{Name: "a", Array: x[0].Array}, data.Field{Name: "b", Array: x[0].Array},
		data.Field{Name: "class", Array: x[1].Array}, data.Named("size", size, 70)))
	network := func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		managed.AddMetric("largest", graph.ReduceMax(input("a"), -1))
		return twoHeads(scope, input)
	}
	m := newModel(t, flaxlike.Functional(network), flaxlike.WithLearningRate(1e-30), flaxlike.WithBatchSize(16),
		flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "class"}, flaxlike.Loss{Name: "mse", Output: "size", Weight: 0.25}),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "off", Output: "size", Func: func(labels, out *graph.Node) *graph.Node {
			return graph.Abs(graph.Sub(labels, graph.Squeeze(out, -1)))
		}}))
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 1, InOrder: true, Validation: set}))
	require.NoError(t, err)
	row := func(name string) float64 { return series(t, h, name)[0] }
	for _, name := range []string{"loss", "class_loss", "size_loss", "size_off", "largest"} {
		require.NotZero(t, row(name))
		require.InEpsilon(t, row("val_"+name), row(name), 1e-5, name) // nothing was learned, so the test says what training did
	}
	require.InEpsilon(t, row("class_loss")+0.25*row("size_loss"), row("loss"), 1e-6)
	require.Greater(t, row("size_loss"), 1000.0, "before its weight: the mean of n² for n below 70 is 1,597")
	var sum float64
	for i := range 70 {
		sum += float64(x[0].Array.Flat.([]float32)[3*i+i%3])
	}
	require.InEpsilon(t, sum/70, row("largest"), 1e-6)
}
