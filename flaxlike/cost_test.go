package flaxlike_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
)

type ctxOf = context.Context

// counting counts what leaves the device, and the batches.
type counting struct {
	strategies.Strategy
	fetches, batches *atomic.Int64
}

func (c counting) Batch(b data.Batch) (data.Batch, error) {
	c.batches.Add(1)
	return c.Strategy.Batch(b)
}

func (c counting) Fetch(b compute.Buffer) (*tensors.Tensor, error) {
	c.fetches.Add(1)
	return c.Strategy.Fetch(b)
}

// Fit makes a step with no more than a train.Loop by hand needs for the same: memory from Go's heap, and copies from
// the device, of which an epoch without readers has none.
func TestFit_costsWhatTrainCosts(t *testing.T) {
	set := sorted(t, 3200)
	const steps, epochs = 100, 10
	var fetches, batches atomic.Int64
	strategy := counting{jit(t), &fetches, &batches}
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithStrategy(strategy))
	fit := func(f flaxlike.Fit) {
		f.Epochs = epochs
		_, err := m.Fit(t.Context(), set, quiet(f))
		require.NoError(t, err)
	}

	state, err := managed.New(strategy, managed.WithOptimizer(optim.New(0.001, optim.Adam{})))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	loss, err := losses.Named(sparse)
	require.NoError(t, err)
	step := managed.TrainStep(func(b *managed.Builder) {
		logits := layers.Dense(b.Scope(), b.Field("x"), true, 3)
		v := loss(b.Field("y"), logits)
		b.Loss("loss", graph.ReduceMean(v))
		b.Mean("avg_loss", v)
		b.Track("accuracy", metrics.Accuracy(), nil, b.Field("y"), logits)
	})
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	hand := func() {
		training := train.Loop[*managed.State, data.Batch]{Step: step, Epoch: loop.Steps(steps),
			Reset: managed.Reset}
		_, err := training.Run(t.Context(), state, set.Batches(32, data.Shuffle(0)), loop.Until(loop.Steps(steps*epochs)), loop.Keep(loop.Every(loop.Steps(steps))))
		require.NoError(t, err)
	}
	cost := func(run func()) (allocations float64, copies int64) {
		run() // compiles
		fetches.Store(0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run()
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / (steps * epochs), fetches.Load()
	}
	byHand, handCopies := cost(hand)
	byFit, fitCopies := cost(func() { fit(flaxlike.Fit{}) })
	require.LessOrEqual(t, byFit, 1.1*byHand+0.5)
	require.LessOrEqual(t, fitCopies, handCopies)
	require.LessOrEqual(t, fitCopies, int64(epochs), "what nobody reads stays on the device")
	t.Logf("a step: %.2f allocations by Fit, %.2f by hand; %d and %d copies from the device in %d steps", byFit, byHand, fitCopies, handCopies, steps*epochs)
}
