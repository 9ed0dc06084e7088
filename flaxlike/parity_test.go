package flaxlike_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

// B86: Jaxloop's simple trainer, with the parts of it that never worked there: tests, summaries, resuming.
func TestB86_simpleTrainer(t *testing.T) {
	// Its loss is half of the mean squared error.
	half := flaxlike.WithLoss(flaxlike.Loss{Name: "mse", Weight: 0.5})
	network := nn.Sequential{nn.Dense{Units: 8}, nn.Dropout{Rate: 0.3}, nn.Dense{Units: 1}}
	r := plugintest.Devices(t, 2)
	both, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	for name, strategy := range map[string]strategies.Strategy{"one device": jit(t), "data parallel": both} {
		t.Run(name, func(t *testing.T) {
			summary := filepath.Join(t.TempDir(), "summary.jsonl")
			folder := openFolder(t, t.TempDir(), checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}})
			set := line(t, 96)
			m := newModel(t, network, half, flaxlike.WithStrategy(strategy))
			ends := 0
			saved := resume(folder, checkpoint.Every(loop.Steps(1)))
			fit := quiet(flaxlike.Fit{Epochs: 2, EachStep: true, Validation: set,
				Callbacks: []loop.Option{saved, callbacks.JSONL(summary, loop.Every(loop.Steps(3))), loop.Watch(loop.Every(loop.Steps(3)), func(ctxOf, loop.Report) error { ends++; return nil })}})
			h, err := m.Fit(t.Context(), set, fit)
			require.NoError(t, err)
			losses := series(t, h, "loss")
			require.Len(t, losses, 6)
			require.Len(t, series(t, h, "val_loss"), 2, "the tests are made")
			require.Equal(t, 2, ends)
			list, err := folder.List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 2)
			require.EqualValues(t, 6, list[1].Step)
			require.FileExists(t, summary)

			again := newModel(t, network, half, flaxlike.WithStrategy(strategy))
			fit.Epochs, fit.Callbacks = 3, []loop.Option{saved}
			h, err = again.Fit(t.Context(), set, fit)
			require.NoError(t, err)
			require.Equal(t, losses, series(t, h, "loss")[:6])
			require.Len(t, series(t, h, "loss"), 9, "resuming finds what was saved")
			t.Logf("B86: 6 steps, %d checkpoints kept, resumed to 9", len(list))
		})
	}
}

// Jaxloop's TransformerStep: what the mask leaves out is in neither sum, and a batch with nothing in it costs nothing.
func TestTransformerStep(t *testing.T) {
	decoder := func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		h := nn.Sequential{nn.Embedding{Vocabulary: 5, Width: 8}, nn.Attention{Heads: 2, Width: 4}, nn.LayerNorm{}, nn.Dropout{Rate: 0.1}, nn.Dense{Units: 5}}
		return map[string]*graph.Node{"logits": h.Apply(scope, input("input_ids"))}
	}
	ids, mask, err := data.PadSequences([][]int32{{1, 2, 3, 4}, {2, 3}, {4}, {3, 4, 1}}, -100)
	require.NoError(t, err)
	labels := ids.Flat.([]int32)
	inputs := make([]int32, len(labels))
	for i, there := range mask.Flat.([]bool) {
		if there {
			inputs[i] = labels[i]
		}
	}
	set, err := data.New(data.Named("input_ids", inputs, 4, 4), data.Named("labels", labels, 4, 4))
	require.NoError(t, err)
	m := newModel(t, flaxlike.Functional(decoder), flaxlike.WithLoss(flaxlike.Loss{Name: masked, Label: "labels"}), flaxlike.WithLearningRate(0.05), flaxlike.WithBatchSize(4))
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 40}))
	require.NoError(t, err)
	all := series(t, h, "loss")
	require.Less(t, all[39], 0.1*all[0], "it learns to say what it was told")
	out, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, []int{4, 4, 5}, output(t, out, "logits").Dims)

	short, err := data.New(data.Named("input_ids", inputs, 4, 4))
	require.NoError(t, err)
	_, err = m.Fit(t.Context(), short, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, `no field "labels"`)
}

// What Elegy has as arguments and methods, and is one line here.
func TestElegy(t *testing.T) {
	set := line(t, 96)
	home := jit(t)
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithStrategy(home))
	// init_on_batch, and the batch's own steps.
	batch := first(t, set, 32)
	require.NoError(t, m.Init(t.Context(), batch))
	_, _, err := m.TrainStep(t.Context(), batch)
	require.NoError(t, err)
	// eager, and back: the strategy of a model that has trained.
	eager := strategies.Eager(plugintest.CPU(t))
	require.NoError(t, m.MoveTo(t.Context(), eager))
	_, _, err = m.TrainStep(t.Context(), batch)
	require.NoError(t, err)
	require.NoError(t, m.MoveTo(t.Context(), home))
	// The learning rate is in the history.
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2, Callbacks: []loop.Option{
		loop.Watch(loop.At(loop.Steps(3)), func(ctxOf, loop.Report) error { return m.SetLearningRate(0.5) })}}))
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0.001, 0.5}, series(t, h, "learning_rate"), 1e-6)
	// stop_training.
	h, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 100, Callbacks: []loop.Option{
		loop.Watch(loop.At(loop.Steps(6)), func(ctxOf, loop.Report) error { return loop.ErrStop })}}))
	require.NoError(t, err)
	require.Equal(t, 2, h.Len())
	// A metric that sees the inputs too, as a test step's arguments do, is the network's own.
	seen := newModel(t, nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		y := nn.Dense{Units: 1}.Apply(scope, x)
		managed.AddMetric("slope", graph.ReduceAllMean(graph.Div(y, graph.AddScalar(x, 10))))
		return y
	}), flaxlike.WithLoss("mse"))
	found, err := seen.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.Contains(t, found, "slope")
}

// A loss that is off is logged and trains nothing; Keras's weight 0.
func TestKerasLoss_off(t *testing.T) {
	set := line(t, 64)
	mse := flaxlike.Loss{Name: "mse"}
	weights := func(losses ...flaxlike.Loss) (any, map[string]float64) {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss(losses...), flaxlike.WithSeed(3))
		_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2}))
		require.NoError(t, err)
		found, err := m.Evaluate(t.Context(), set)
		require.NoError(t, err)
		v, err := m.Value("/model/kernel")
		require.NoError(t, err)
		return v.Value(), found
	}
	alone, _ := weights(mse)
	off, found := weights(mse, flaxlike.Loss{Name: "mae", Off: true})
	require.Equal(t, alone, off)
	require.Equal(t, found["mse"], found["loss"])
	require.Positive(t, found["mae"])
	on, _ := weights(mse, flaxlike.Loss{Name: "mae"})
	require.NotEqual(t, alone, on, "0 stands for 1")
}
