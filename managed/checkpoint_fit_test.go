package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func TestB102_missingAndExtraAreToldApart(t *testing.T) {
	r, set := plugintest.CPU(t), line(t, 64)
	f := folder(t, checkpoint.Options{})
	saved := newState(t, r, managed.WithOptimizer(sgd()))
	steps(t, layered(t, "one", "two"), saved, set, 0, 2)
	content, err := saved.Content(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Save(t.Context(), 2, content))
	for _, row := range []struct {
		name   string
		layers []string
		want   []managed.Mismatch
	}{
		{"the model has more", []string{"one", "two", "three"}, []managed.Mismatch{
			{Name: "/three/dense/biases", Model: "float32[1]"}, {Name: "/three/dense/weights", Model: "float32[1 1]"}}},
		{"the checkpoint has more", []string{"one"}, []managed.Mismatch{
			{Name: "/two/dense/biases", Saved: "float32[1]"}, {Name: "/two/dense/weights", Saved: "float32[1 1]"}}},
		{"the same", []string{"one", "two"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := f.Newest(t.Context())
			require.NoError(t, err)
			state := newState(t, r, managed.WithOptimizer(sgd()))
			require.NoError(t, state.Restore(t.Context(), c))
			err = layered(t, row.layers...).Prepare(t.Context(), state, first(t, set.Batches(16)))
			if row.want == nil {
				require.NoError(t, err)
				return
			}
			var mismatch *managed.MismatchError
			require.ErrorAs(t, err, &mismatch)
			require.Equal(t, row.want, mismatch.Mismatches)
		})
	}
	t.Log("B102: what is missing and what is too much, each named with its shape")
}

// On a machine that is described and not there, states and steps work up to their numbers, under each strategy.
func TestDescribed(t *testing.T) {
	r := plugintest.Described(t, 8)
	whole := func(options strategies.Parallel) func() (strategies.Strategy, error) {
		return func() (strategies.Strategy, error) { return strategies.DataParallel(r, options) }
	}
	for name, open := range map[string]func() (strategies.Strategy, error){
		"jit":           func() (strategies.Strategy, error) { return strategies.Jit(r), nil },
		"data parallel": whole(strategies.Parallel{}),
		"sharded":       whole(strategies.Parallel{Shard: strategies.FullyShard(8, 8)}),
		"model axis":    whole(strategies.Parallel{ModelDevices: 2, Shard: strategies.FullyShard(4, 8)}),
	} {
		t.Run(name, func(t *testing.T) {
			on, err := open()
			require.NoError(t, err)
			described(t, on)
		})
	}
	require.Zero(t, drawn.Load(), "initial values that nobody can read")
	_, err := managed.TrainStep(sixteen).Program(t.Context(), stateOn(t, strategies.Eager(r)), first(t, batchesOfEight(t)))
	require.ErrorIs(t, err, xla.ErrNotRun)
}

// Given values are taken without their numbers, and steps of an epoch run through a loop.
func TestDescribed_loop(t *testing.T) {
	r := plugintest.Described(t, 1)
	given := map[string]*tensors.Tensor{"/dense/weights": tensors.FromValue([][]float32{make([]float32, 16)}), "/dense/biases": tensors.FromValue(make([]float32, 16))}
	state := stateOn(t, strategies.Jit(r), managed.WithValues(given))
	step := managed.TrainStep(sixteen)
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, batchesOfEight(t), loop.Until(loop.Steps(600)))
	require.NoError(t, err)
	require.EqualValues(t, 600, result.Elapsed.Steps)
}
