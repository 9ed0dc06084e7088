package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/serve"
)

// An example that the network cannot take is an error that names its field.
func TestS36_exampleOfOtherDims(t *testing.T) {
	set := line(t, 8)
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	_, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	_, err = m.PredictOne(t.Context(), data.X(make([]float32, 3), 3))
	require.ErrorContains(t, err, `flaxlike: predict: field "x" is float32[3] for an example, and was float32[1] when the network was built`)
	require.ErrorIs(t, err, serve.ErrInput)
	_, err = m.PredictOne(t.Context(), data.X(make([]float32, 1), 1, 1))
	require.ErrorContains(t, err, "leave the batch axis out")
	require.ErrorIs(t, err, serve.ErrInput)
	_, err = m.PredictOne(t.Context(), data.X(make([]float32, 1), 1))
	require.NoError(t, err)
	lengths := newModel(t, nn.GlobalMeanPool{}, flaxlike.WithLoss("mse"))
	for _, n := range []int{3, 5} { // any length is right
		_, err = lengths.PredictOne(t.Context(), data.X(make([]float32, 2*n), n, 2))
		require.NoError(t, err)
	}
}

// A rate that a float32 holds is said as it was given, and LearningRate knows it before the first step.
func TestS36_learningRate(t *testing.T) {
	set, path := line(t, 8), filepath.Join(t.TempDir(), "model")
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("adam"))
	rate, err := m.LearningRate()
	require.NoError(t, err)
	require.Equal(t, 0.001, rate)
	must.M1(m.Fit(t.Context(), set, quiet(flaxlike.Fit{})))
	must.M(m.SetLearningRate(0.05))
	must.M(m.Save(path))
	require.Contains(t, must.M1(flaxlike.Describe(path)).String(), "adam, rate 0.05\n")
	again := must.M1(opened(t, path))
	rate, err = again.LearningRate()
	require.NoError(t, err)
	require.Equal(t, 0.05, rate)
	must.M1(again.Fit(t.Context(), set, quiet(flaxlike.Fit{})))
	rate, err = again.LearningRate()
	require.NoError(t, err)
	require.Equal(t, float64(float32(0.05)), rate, "as the device holds it")
}

// The rate of an optimizer by value is known before the first step as that of one by name is, whatever a schedule makes
// of it; one of GoMLX's does not say it.
func TestModel_rateBeforeTheFirstStep(t *testing.T) {
	of := func(options ...flaxlike.Option) *flaxlike.Model {
		return newModel(t, nn.Dense{Units: 1}, append(options, flaxlike.WithLoss("mse"))...)
	}
	for name, m := range map[string]*flaxlike.Model{
		"a name":     of(flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(0.05)),
		"a rule":     of(flaxlike.WithOptimizer(optim.New(0.05, optim.Momentum{Decay: 0.9}))),
		"a schedule": of(flaxlike.WithOptimizer(optim.New(0.05, optim.Adam{}, optim.Scale(0)))),
		"a scaled":   of(flaxlike.WithOptimizer(optim.New(0.05)), flaxlike.WithPolicy(optim.MixedFloat16())),
	} {
		rate, err := m.LearningRate()
		require.NoError(t, err, name)
		require.Equal(t, 0.05, rate, name)
	}
	m := of(flaxlike.WithOptimizer(optim.New(0.05)))
	require.NoError(t, m.SetOptimizer(t.Context(), optim.New(0.5)))
	require.Equal(t, 0.5, must.M1(m.LearningRate()), "that of SetOptimizer")
	require.NoError(t, m.SetLearningRate(0.25))
	require.Equal(t, 0.25, must.M1(m.LearningRate()), "that was set")
	_, err := of(flaxlike.WithOptimizer(optim.GoMLX(optimizer.Adam().Done()))).LearningRate()
	require.ErrorIs(t, err, managed.ErrNoLearningRate)
}

// Weights of batches that come one by one, by which no example counts, are an error at the end of the first epoch and
// of an evaluation; a batch alone may have no example that counts.
func TestS36_weightsOfAStream(t *testing.T) {
	of := func(weights ...float32) loop.Source[data.Batch] {
		set := must.M1(data.New(data.X(make([]float32, 8), 8, 1), data.Y(make([]float32, 8), 8, 1), data.Named("weight", weights, 8)))
		return set.Batches(4)
	}
	none, some := of(0, 0, 0, 0, 0, 0, 0, 0), of(0, 0, 0, 0, 0, 0, 0, 1)
	const want = `field "weight": the sample weights of all examples so far are 0`
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("weight"))
	_, err := m.FitBatches(t.Context(), none, quiet(flaxlike.Fit{StepsPerEpoch: 2, Epochs: 2}))
	require.ErrorContains(t, err, want)
	require.ErrorIs(t, err, flaxlike.ErrValue)
	_, err = m.EvaluateBatches(t.Context(), loop.Data[data.Batch](none.(data.Batches).All()))
	require.ErrorContains(t, err, want)
	_, err = m.FitBatches(t.Context(), some, quiet(flaxlike.Fit{StepsPerEpoch: 2, ValidationBatches: none}))
	require.ErrorContains(t, err, want)
	_, err = m.FitBatches(t.Context(), some, quiet(flaxlike.Fit{StepsPerEpoch: 2, Epochs: 2, ValidationBatches: some}))
	require.NoError(t, err)
}

// An entry that a checkpoint is kept by, and nothing logs, is an error before the first step; the only loss is logged
// as "loss", whatever its name.
func TestS36_bestByALossOfOnesOwn(t *testing.T) {
	set := line(t, 8)
	own := flaxlike.Loss{Name: "own", Func: func(labels, output *graph.Node) *graph.Node { return graph.Square(graph.Sub(labels, output)) }}
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss(own))
	for entry, hint := range map[string]string{"own_loss": `"loss"`, "val_own_loss": `"val_loss"`} {
		for _, option := range []loop.Option{callbacks.KeepBest(entry), checkpoint.Resume(t.TempDir(), checkpoint.KeepBest(entry)),
			checkpoint.Resume(t.TempDir(), checkpoint.Options{Best: entry, Mode: loop.Lowest})} {
			_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Validation: set, Callbacks: []loop.Option{option}}))
			require.ErrorContains(t, err, "before the first step: a callback waits for \""+entry+"\": no such entry; did you mean "+hint)
			require.ErrorIs(t, err, loop.ErrNoEntry)
		}
	}
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Callbacks: []loop.Option{checkpoint.Resume(t.TempDir(), checkpoint.KeepBest("loss"))}}))
	require.NoError(t, err)
}
