package managed_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
)

// maxHeapGrowth is by how much Go's heap may grow in a long run.
const maxHeapGrowth = 1 << 20

// level checks that a run holds as much at its end as it held when it was warm.
func level(t *testing.T, warm, end footprint) {
	t.Helper()
	require.LessOrEqual(t, end.goroutines, warm.goroutines+2, "a save may be at work")
	if testing.Short() { // under the race detector, whose own memory says nothing
		return
	}
	require.LessOrEqual(t, end.heap-warm.heap, int64(maxHeapGrowth), "bytes of Go's heap")
	require.LessOrEqual(t, end.resident-warm.resident, int64(maxGrowth), "bytes of resident memory")
}

// F19: a long run with a bounded history, running averages, a bar and a test now and then needs no more memory at its
// end than after its first ten thousand steps: 8 MB resident, 1 MB of Go's heap.
func TestF19_longRun(t *testing.T) {
	// A row whose value was not read holds the logs of its block: of 64 rows after 10,000 steps each is of another one.
	steps, warmUp, kept := int64(soakSteps), int64(10_000), 64
	if testing.Short() {
		steps, warmUp = 2_000, 200
	}
	state := newState(t, plugintest.Uncached(t, xla.KeepPrograms(0)), managed.WithOptimizer(optim.New(0.01, optim.Adam{})))
	train := stepper(t, managed.TrainStep(regression, managed.RunningAverages()))
	test := stepper(t, managed.TestStep(regression))
	evaluation := loop.Evaluation[*managed.State, data.Batch]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, test)),
		Data: line(t, 32).Batches(16)}
	var warm, end footprint
	measure := func(into *footprint) func(context.Context, loop.Report) error {
		return func(context.Context, loop.Report) error { *into = takeFootprint(t); return nil }
	}
	result, err := loop.New(loop.On(loop.EachStep, train), evaluation.On(loop.Every(loop.Steps(500)))).
		Run(t.Context(), state, line(t, 64).Batches(16), loop.Until(loop.Steps(warmUp+steps)),
			loop.Thin(kept), callbacks.ProgressBar(io.Discard),
			loop.Watch(loop.At(loop.Steps(warmUp)), measure(&warm)), loop.Watch(loop.At(loop.Steps(warmUp+steps)), measure(&end)))
	require.NoError(t, err)
	require.Equal(t, warmUp+steps, result.Elapsed.Steps)
	require.LessOrEqual(t, result.History.Len(), kept)
	level(t, warm, end)
	t.Logf("F19: %d steps after %d, with tests, averages, a bar and %d rows of the history: resident %+d KiB, of it Go's heap %+d KiB",
		steps, warmUp, result.History.Len(), (end.resident-warm.resident)>>10, (end.heap-warm.heap)>>10)
}

// F19: a hundred epochs, each with an evaluation and a checkpoint, after ten to warm up.
func TestF19_epochs(t *testing.T) {
	epochs, warmUp := int64(100), int64(10)
	if testing.Short() {
		epochs, warmUp = 5, 1
	}
	const perEpoch = 20
	state := newState(t, plugintest.Uncached(t, xla.KeepPrograms(0)), managed.WithOptimizer(optim.New(0.01, optim.Adam{})))
	train := stepper(t, managed.TrainStep(noisy, managed.RunningAverages()))
	test := stepper(t, managed.TestStep(noisy))
	evaluation := loop.Evaluation[*managed.State, data.Batch]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, test)),
		Data: line(t, 64).Batches(16)}
	f := folder(t, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}})
	var warm, end footprint
	measure := func(into *footprint) func(context.Context, loop.Report) error {
		return func(context.Context, loop.Report) error { *into = takeFootprint(t); return nil }
	}
	epoch := loop.Every(loop.Steps(perEpoch))
	result, err := loop.New(loop.On(loop.EachStep, train), evaluation.On(epoch)).
		Run(t.Context(), state, line(t, 16*perEpoch).Batches(16, data.Shuffle(3)),
			loop.Until(loop.Steps((warmUp+epochs)*perEpoch)), loop.Thin(100), f.Resume(checkpoint.Options{When: epoch}),
			loop.Watch(loop.At(loop.Steps(warmUp*perEpoch)), measure(&warm)),
			loop.Watch(loop.At(loop.Steps((warmUp+epochs)*perEpoch)), measure(&end)))
	require.NoError(t, err)
	require.LessOrEqual(t, result.History.Len(), 100)
	level(t, warm, end)
	kept, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, kept, 2, "checkpoints")
	t.Logf("F19: %d epochs with a test and a checkpoint each: resident %+d KiB, of it Go's heap %+d KiB; %d checkpoints are kept",
		epochs, (end.resident-warm.resident)>>10, (end.heap-warm.heap)>>10, len(kept))
}
