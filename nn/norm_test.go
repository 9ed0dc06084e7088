package nn_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// All layers learn, with the same numbers under Eager, and in bfloat16 with a policy.
func TestStrategies(t *testing.T) {
	var x, y, lengths []int32
	const n, places = 16, 3
	for i := range int32(n * places) {
		x = append(x, (i*7+i/5)%10+1)
		y = append(y, (i*7+i/5)%10+1)
	}
	for i := range int32(n) {
		lengths = append(lengths, i%places+1)
	}
	set := must.M1(data.New(data.X(x, n, places), data.Y(y, n, places), data.Field{Name: "n", Array: data.Array{Flat: lengths, Dims: []int{n}}}))
	run := func(t *testing.T, s strategies.Strategy, steps int, options ...managed.Option) []float64 {
		state, err := managed.New(s, append(options, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.05).Done())), managed.WithSeed(7))...)
		require.NoError(t, err)
		step := managed.TrainStep(tagger)
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(8), loop.Until(loop.Steps(steps)))
		require.NoError(t, err)
		_, losses, err := result.History.Series("loss")
		require.NoError(t, err)
		v, err := state.Value("/tokens/embeddings")
		require.NoError(t, err)
		require.Equal(t, dtypes.Float32, v.DType())
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
		return losses
	}
	want := run(t, strategies.Jit(plugintest.CPU(t)), 100)
	t.Logf("the loss goes from %.3f to %.3f", want[0], want[99])
	require.Less(t, want[99], want[0]*0.75)
	if eager {
		t.Run("eager", func(t *testing.T) {
			require.InDeltaSlice(t, want[:4], run(t, strategies.Eager(plugintest.CPU(t)), 4), 1e-4)
		})
	}
	t.Run("bfloat16", func(t *testing.T) {
		require.InDeltaSlice(t, want[:4], run(t, strategies.Jit(plugintest.CPU(t)), 4, managed.WithPolicy(optim.MixedBFloat16())), 0.05)
	})
}
