package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
)

// Another optimizer starts fresh on the current parameters: its steps are those of a new state with these values.
func TestSetOptimizer(t *testing.T) {
	ctx, r := t.Context(), plugintest.CPU(t)
	batch := first(t, line(t, 64).Batches(16))
	state := newState(t, r, managed.WithOptimizer(optim.New(0.01, optim.Adam{})))
	step := managed.TrainStep(regression)
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	train := func(state *managed.State, n int) (loss float64) {
		for range n {
			_, logs, err := step.Step(ctx, state, batch)
			require.NoError(t, err)
			loss, err = logs.Float("loss")
			require.NoError(t, err)
		}
		return loss
	}
	train(state, 3)
	view, err := state.View(ctx)
	require.NoError(t, err)
	require.NoError(t, state.SetOptimizer(ctx, optim.New(0.1, optim.Momentum{Decay: 0.9})))
	test := managed.TestStep(regression)
	_, err = view.Step(ctx, test, batch)
	require.ErrorIs(t, err, xla.ErrBusy)
	require.NoError(t, view.Close())
	require.NoError(t, test.Close())

	fresh := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Momentum{Decay: 0.9})))
	require.NoError(t, step.Prepare(ctx, fresh, batch))
	for _, name := range state.Names() {
		value, err := state.Value(name)
		require.NoError(t, err)
		require.NoError(t, fresh.SetValue(name, value), "a variable that the new one has not: %s", name)
	}
	require.Equal(t, train(fresh, 4), train(state, 4))
	require.Equal(t, fresh.Names(), state.Names())
	rate, err := state.LearningRate()
	require.NoError(t, err)
	require.InDelta(t, 0.1, rate, 1e-7)
	require.Error(t, state.SetOptimizer(ctx, nil))

	// A checkpoint's optimizer waits for its step first.
	f := folder(t, checkpoint.Options{})
	content, err := state.Content(ctx)
	require.NoError(t, err)
	require.NoError(t, f.Save(ctx, 1, content))
	saved, err := f.Load(ctx, 1)
	require.NoError(t, err)
	restored := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Momentum{Decay: 0.9})))
	require.NoError(t, restored.Restore(ctx, saved))
	require.ErrorContains(t, restored.SetOptimizer(ctx, optim.New(0.01, optim.Adam{})), "values of a checkpoint wait for the steps that create their variables")
	require.NoError(t, step.Prepare(ctx, restored, batch))
	require.NoError(t, restored.SetOptimizer(ctx, optim.New(0.01, optim.Adam{})))
	require.NoError(t, state.SetOptimizer(ctx, optim.New(0.01, optim.Adam{})))
	require.Equal(t, train(state, 2), train(restored, 2))
}
