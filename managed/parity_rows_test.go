package managed_test

import (
	"context"
	"iter"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/xla"
)

// B59: a step compiled on request, called, closed and compiled again with another setting continues its count, and
// hooks see each of its calls once.
func TestB59_compiledAgainOnRequest(t *testing.T) {
	r, batch := plugintest.CPU(t), firstBatch(t)
	state := newState(t, r, managed.WithOptimizer(sgd()))
	var seen []int64
	from := loop.Elapsed{}
	one := func(step *managed.Stepper) {
		require.NoError(t, step.Prepare(t.Context(), state, batch))
		require.Len(t, step.StableHLO(), 1)
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.From(func(int64) iter.Seq2[data.Batch, error] {
			return func(yield func(data.Batch, error) bool) { yield(batch, nil) }
		}), loop.Continue(from, nil),
			loop.Watch(loop.EachStep, func(_ context.Context, report loop.Report) error {
				seen = append(seen, report.Elapsed.Steps)
				return nil
			}))
		require.NoError(t, err)
		from = result.Elapsed
		require.NoError(t, step.Close())
		require.Empty(t, step.StableHLO())
	}
	step := managed.TrainStep(regression)
	one(step)
	before := floats(t, state, "/dense/dense/weights")
	one(step)
	one(managed.TrainStep(regression, managed.MaxShapes(1)))
	require.NotEqual(t, before, floats(t, state, "/dense/dense/weights"))
	require.Equal(t, []int64{1, 2, 3}, seen)
	_, err := xla.Open(t.Context(), xla.CPU, xla.ClientOption("cpu_device_count", "two"))
	require.ErrorContains(t, err, "cpu_device_count", "a wrong flag of the compiler's")
}

// B60: the operations of a step, asked for in a watcher, are more than none.
func TestB60_flops(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := stepper(t, managed.TrainStep(regression))
	_, _, err := step.Step(t.Context(), state, firstBatch(t))
	require.NoError(t, err)
	costs, err := step.Costs()
	require.NoError(t, err)
	require.Len(t, costs, 1)
	require.Positive(t, costs[0].FLOPs)
	t.Logf("B60: %v FLOPs", costs[0].FLOPs)
}

// B92: a metric that collects on the host gets no values inside of a compiled step, and says so; outside, what was
// output in all batches is joined in their order.
func TestB92_collectingOnTheHost(t *testing.T) {
	r, set := plugintest.CPU(t), line(t, 40)
	inside := stepper(t, managed.TestStep(func(b *managed.Builder) {
		if _, err := xla.Value(b.Field("x")); err != nil {
			panic(err)
		}
	}))
	_, _, err := inside.Step(t.Context(), newState(t, r), firstBatch(t))
	require.ErrorContains(t, err, "the node has no value")

	outside := stepper(t, managed.TestStep(func(b *managed.Builder) { b.Output("x", b.Field("x")) }))
	var got, want []float32
	for b := range set.Batches(16, data.Kept).All() {
		want = append(want, b.Fields[0].Array.Flat.([]float32)...)
	}
	collect := loop.Watch(loop.EachStep, func(_ context.Context, report loop.Report) error {
		got = append(got, tensors.MustCopyFlatData[float32](array(t, report.Logs, "outputs.x"))...)
		return nil
	})
	_, err = loop.New(loop.On(loop.EachStep, outside)).Run(t.Context(), newState(t, r), set.Batches(16, data.Kept), collect)
	require.NoError(t, err)
	require.Len(t, got, 40)
	require.Equal(t, want, got)
	t.Logf("B92: %d rows of 3 batches, in their order", len(got))
}
