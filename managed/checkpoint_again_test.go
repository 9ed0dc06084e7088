package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
)

// A state that only tests takes one checkpoint of a run after the other; what the optimizer has in them waits on, and
// the training can go on from the last. One of another optimizer is still refused.
func TestRestoreAgainAndAgain(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	network := func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("a"), b.Field("x"), true, 1))))
	}
	train, test := stepper(t, managed.TrainStep(network)), stepper(t, managed.TestStep(network))
	adam := func() *managed.State {
		return newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	}
	f := folder(t, checkpoint.Options{})
	save := func(step checkpoint.Step, state *managed.State) {
		content, err := state.Content(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Save(t.Context(), step, content))
	}
	load := func(step checkpoint.Step) *checkpoint.Checkpoint {
		c, err := f.Load(t.Context(), step)
		require.NoError(t, err)
		return c
	}
	unbroken := adam()
	for i := range 3 {
		steps(t, train, unbroken, set, 2*i, 2*i+2)
		save(checkpoint.Step(2*i+2), unbroken)
	}
	state := adam()
	for _, step := range []checkpoint.Step{2, 4, 2, 6} {
		require.NoError(t, state.Restore(t.Context(), load(step)), "step %d", step)
		require.NoError(t, test.Prepare(t.Context(), state, first(t, set.Batches(16))))
		saved, ok := load(step).Tensor("/a/dense/weights")
		require.True(t, ok)
		require.Equal(t, saved.Data, safetensors.Bytes(floats(t, state, "/a/dense/weights")))
	}
	save(7, state) // all of step 6
	require.Len(t, load(7).Tensors, len(load(6).Tensors))

	other := newState(t, r, managed.WithOptimizer(optim.New(0.01, optim.Momentum{Decay: 0.9})))
	steps(t, train, other, set, 0, 2)
	save(8, other)
	var mismatch *managed.MismatchError
	require.ErrorAs(t, state.Restore(t.Context(), load(8)), &mismatch)

	steps(t, train, unbroken, set, 6, 8)
	steps(t, train, state, set, 6, 8)
	require.Equal(t, bits(t, unbroken), bits(t, state))
}
