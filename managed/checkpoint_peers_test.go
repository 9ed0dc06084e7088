package managed_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
)

// layered is a training step of layers of these names.
func layered(t *testing.T, names ...string) *managed.Stepper {
	return stepper(t, managed.TrainStep(func(b *managed.Builder) {
		x := b.Field("x")
		for _, name := range names {
			x = layers.Dense(b.Scope().In("%s", name), x, true, 1)
		}
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), x)))
	}))
}

func TestB56_savedAtEachInnerLoop(t *testing.T) {
	r, set := plugintest.CPU(t), line(t, 64)
	f := folder(t, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}})
	state, step := newState(t, r, managed.WithOptimizer(adam())), layered(t, "one", "two")
	// A save that a later one overtakes is not made: each inner loop waits for that of the one before.
	waits := loop.Watch(loop.Every(loop.Steps(2)), func(ctx context.Context, r loop.Report) error {
		for before := checkpoint.Step(r.Elapsed.Steps - 2); before > 0; runtime.Gosched() {
			all, err := f.List(ctx)
			if err != nil || slices.ContainsFunc(all, func(i checkpoint.Info) bool { return i.Step == before }) {
				return err
			}
		}
		return nil
	})
	_, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(16), loop.Until(loop.Steps(10)), waits,
		f.Resume(checkpoint.Every(loop.Steps(2))))
	require.NoError(t, err)

	var all []int64
	restored := newState(t, r, managed.WithOptimizer(adam()))
	for at, err := range (checkpoint.Follow{Folder: f}).Into(t.Context(), restored) {
		require.NoError(t, err)
		all = append(all, at.Steps)
	}
	require.Equal(t, []int64{8, 10}, all)
	require.NoError(t, step.Prepare(t.Context(), restored, first(t, set.Batches(16))))
	for _, layer := range []string{"one", "two"} {
		require.Subset(t, restored.Names(), []string{"/" + layer + "/dense/weights", "/" + layer + "/dense/biases"})
	}
	require.Equal(t, bits(t, state), bits(t, restored))
	t.Logf("B56: 5 inner loops, 2 checkpoints kept; step 10 has all of %d variables", len(restored.Names()))
}

func TestB77_stepZeroComesBack(t *testing.T) {
	r, set := plugintest.CPU(t), line(t, 64)
	f := folder(t, checkpoint.Options{})
	state, step := newState(t, r, managed.WithOptimizer(adam()), managed.WithSeed(7)), layered(t, "one")
	require.NoError(t, step.Prepare(t.Context(), state, first(t, set.Batches(16))))
	pause := loop.Watch(loop.AtStart, func(context.Context, loop.Report) error { return loop.ErrPause })
	training, resume := loop.New(loop.On(loop.EachStep, step)), f.Resume(checkpoint.Options{When: loop.AtStart})
	_, err := training.Run(t.Context(), state, set.Batches(16), pause, resume)
	require.NoError(t, err)
	restored := newState(t, r, managed.WithOptimizer(adam()))
	again, err := training.Run(t.Context(), restored, set.Batches(16), pause, resume)
	require.NoError(t, err)
	require.Zero(t, again.Elapsed.Steps)
	require.NoError(t, step.Prepare(t.Context(), restored, first(t, set.Batches(16))))
	require.ElementsMatch(t, state.Names(), restored.Names())
	require.Equal(t, bits(t, state), bits(t, restored))
	t.Logf("B77: step 0 saved and restored: the same %d variables to the last bit", len(state.Names()))
}
