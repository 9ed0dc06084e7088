package flaxlike_test

import (
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// A description shows the weights of classes and examples, and the batch size: in memory, of a file, and after Open.
func TestDescribe_weights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	m := newModel(t, nn.Dense{Units: 2}, flaxlike.WithLoss(sparse), flaxlike.WithClassWeights(map[int]float64{0: 1, 1: 2.5}), flaxlike.WithSampleWeights("importance"), flaxlike.WithBatchSize(7))
	require.NoError(t, m.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(make([]float32, 4), 2, 2)}}))
	require.NoError(t, m.Save(path))
	again := must.M1(opened(t, path))
	for _, d := range []flaxlike.Description{m.Describe(), must.M1(flaxlike.Describe(path)), again.Describe()} {
		require.Regexp(t, `\nclass weights +0: 1, 1: 2.5\nsample weights +importance\noptimizer +adam.*\nbatch size +7\n`, d.String())
		require.Contains(t, string(must.M1(json.Marshal(d))), `"class_weights":{"0":1,"1":2.5},"sample_weights":"importance"`)
	}
}

// A model whose weights are random draws says so, also from a file; any training or change of the weights ends that.
func TestCard_untrained(t *testing.T) {
	set, path := line(t, 32), filepath.Join(t.TempDir(), "m.safetensors")
	untrained := func(m *flaxlike.Model) bool {
		of := m.Describe()
		require.Equal(t, of.Card.Untrained, strings.Contains(of.String(), "nothing: the weights are random draws of the initializers"))
		return of.Card.Untrained
	}
	made := func() *flaxlike.Model {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		require.True(t, untrained(m))
		_, err := m.Predict(t.Context(), set)
		require.NoError(t, err, "a baseline is no mistake")
		require.True(t, untrained(m))
		return m
	}
	random := made()
	require.NoError(t, random.Save(path))
	require.NoError(t, random.SetOptimizer(t.Context(), optim.New(0.1, optim.Adam{})))
	require.True(t, untrained(random), "another optimizer changes no weights")
	opened, err := flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t)))
	require.NoError(t, err)
	defer opened.Close()
	require.True(t, untrained(opened))
	_, err = opened.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.NoError(t, err)
	require.False(t, untrained(opened))
	require.NoError(t, opened.Save(path))
	again, err := flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t)))
	require.NoError(t, err)
	defer again.Close()
	require.False(t, untrained(again))
	for name, change := range map[string]func(m *flaxlike.Model) error{
		"Load": func(m *flaxlike.Model) error { return m.Load(t.Context(), path) },
		"SetValue": func(m *flaxlike.Model) error {
			v, err := m.Value("/model/kernel")
			if err != nil {
				return err
			}
			return m.SetValue("/model/kernel", v)
		},
		"TrainStep": func(m *flaxlike.Model) error {
			_, _, err := m.TrainStep(t.Context(), first(t, set, 8))
			return err
		},
	} {
		m := made()
		require.NoError(t, change(m), name)
		require.False(t, untrained(m), name)
	}
}

// The card has the figures of the epoch whose state the model has.
func TestS36_cardOfTheBestEpoch(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{1, 2, 3, 4}, 4, 1), data.Y([]float32{2, 4, 6, 8}, 4, 1)))
	for _, rate := range []float64{0.3, 0.001} { // the losses rise, or fall
		dir := t.TempDir()
		for _, best := range []loop.Option{callbacks.KeepBest("val_loss"),
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(1)), checkpoint.KeepBest("val_loss")),
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(1)), checkpoint.KeepBest("val_loss"))} { // the run has ended: nothing is trained
			m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(rate), flaxlike.WithBatchSize(4))
			history := must.M1(m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 4, Validation: set, Output: io.Discard, Callbacks: []loop.Option{best}}))
			losses := series(t, history, "val_loss")
			require.Equal(t, slices.Min(losses), m.Describe().Card.Fit["val_loss"])
			require.Equal(t, rate == 0.3, slices.Min(losses) != losses[3])
			require.Regexp(t, map[float64]string{0.3: `trained to +epoch 1, in a Fit of 4 epochs\n`, 0.001: `trained to +epoch 4\n`}[rate], m.Describe().String())
			require.NotRegexp(t, `\n +epoch`, m.Describe().String())
			require.InDelta(t, slices.Min(losses), must.M1(m.Evaluate(t.Context(), set))["loss"], 1e-6*losses[0])
		}
	}
}
