package flaxlike_test

import (
	"context"
	"io"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
)

// asIs returns each input as an output of the same name.
func asIs(through map[string]func(*graph.Node) *graph.Node, names ...string) flaxlike.Functional {
	return func(_ *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		out := map[string]*graph.Node{}
		for _, name := range names {
			if out[name] = input(name); through[name] != nil {
				out[name] = through[name](out[name])
			}
		}
		return out
	}
}

// Batches of a source have the results of a set, and each test in a Fit reads them from the beginning.
func TestBatchesInPlaceOfASet(t *testing.T) {
	m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithBatchSize(6))
	set := sorted(t, 12)
	passes := 0
	batches := loop.Data[data.Batch](func(yield func(data.Batch, error) bool) {
		passes++
		set.Batches(6).All()(yield)
	})
	type end struct {
		epoch   int
		figures loop.Logs
	}
	var ends []end
	history, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 9, Output: io.Discard, ValidationBatches: batches,
		Callbacks: []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error {
			if ends = append(ends, end{int(r.Elapsed.Epochs), r.Logs}); r.Elapsed.Epochs == 2 {
				return loop.ErrStop
			}
			return nil
		})}})
	require.NoError(t, err)
	require.Equal(t, 2, history.Len())
	require.Len(t, ends, 2)
	require.Equal(t, 2, ends[1].epoch)
	require.Equal(t, 3, passes, "two tests, and the look before the first step")
	of, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	for name, v := range of {
		if name == "loss" || name == "accuracy" {
			got, err := ends[1].figures.Float("val_" + name)
			require.NoError(t, err)
			require.Equal(t, got, v)
		}
	}
	one, err := m.EvaluateBatches(t.Context(), batches)
	require.NoError(t, err)
	require.Equal(t, of, one)

	whole, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	var flat []float32
	for outputs, err := range m.PredictBatches(t.Context(), batches) {
		require.NoError(t, err)
		require.Equal(t, []int{6, 3}, output(t, outputs).Dims)
		flat = append(flat, output(t, outputs).Flat.([]float32)...)
	}
	require.Equal(t, output(t, whole).Flat, flat)
	for range m.PredictBatches(t.Context(), batches) {
		break
	}

	_, err = m.EvaluateBatches(t.Context(), nil)
	require.EqualError(t, err, "flaxlike: evaluate: the batches are nil")
	_, err = m.Fit(t.Context(), set, flaxlike.Fit{Validation: set, ValidationBatches: batches, Output: io.Discard})
	require.ErrorContains(t, err, "both ValidationBatches and a set to validate on are given")
	var got error
	for _, err := range m.PredictBatches(t.Context(), nil) {
		got = err
	}
	require.ErrorContains(t, got, "flaxlike: predict: ")
	_, err = m.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard, ValidationBatches: loop.Data[data.Batch](func(func(data.Batch, error) bool) {})})
	require.ErrorContains(t, err, `test "val": `)
}

// Another optimizer starts on the present parameters, with its own rate, and not during a Fit.
func TestSetOptimizer(t *testing.T) {
	m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithBatchSize(6))
	set := sorted(t, 12)
	fit := flaxlike.Fit{Output: io.Discard, InOrder: true}
	_, err := m.Fit(t.Context(), set, fit)
	require.NoError(t, err)
	before, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.NoError(t, m.SetOptimizer(t.Context(), optim.New(0.25, optim.Momentum{Decay: 0.9})))
	after, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, before, after)
	fit.Callbacks = []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error {
		rate, err := r.Logs.Float("learning_rate")
		require.NoError(t, err)
		require.Equal(t, 0.25, rate)
		_, err = r.Logs.Float("val_loss")
		require.ErrorIs(t, err, loop.ErrNoEntry, "which a map would give as 0")
		require.ErrorIs(t, m.SetOptimizer(t.Context(), optim.New(1)), xla.ErrBusy)
		return nil
	})}
	_, err = m.Fit(t.Context(), set, fit)
	require.NoError(t, err)
	require.ErrorContains(t, m.SetOptimizer(t.Context(), nil), "flaxlike: set the optimizer: the optimizer is nil")
}
