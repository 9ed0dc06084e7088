package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
)

// If Size is below the rows and no mask marks the examples that count, reported numbers would cover all rows, which is
// an error. Outputs can be truncated.
func TestSizeBelowTheRowsWithoutAMask(t *testing.T) {
	const want = `Batch.Size is 5 examples, but the fields have 16 rows, and no field "mask" marks the examples`
	whole := first(t, line(t, 16).Batches(16))
	short := whole
	short.Size = 5
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	loss := func(b *managed.Builder) {
		b.Loss("loss", graph.Square(graph.Sub(b.Field("y"), layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1))))
	}
	train, test := stepper(t, managed.TrainStep(loss)), stepper(t, managed.TestStep(loss))
	_, _, err := train.Step(t.Context(), state, short)
	require.ErrorContains(t, err, want)
	_, logs, err := train.StepBlock(t.Context(), state, []data.Batch{whole, whole, short})
	require.ErrorContains(t, err, want)
	require.Len(t, logs, 2, "the steps before it are made")
	_, _, err = test.Step(t.Context(), state, short)
	require.ErrorContains(t, err, want)

	five, err := whole.Slice(0, 5)
	require.NoError(t, err)
	padded, err := data.Pad(short, 16) // has a mask for what Size says
	require.NoError(t, err)
	var losses []float64
	for _, batch := range []data.Batch{five, padded} {
		_, logs, err := test.Step(t.Context(), state, batch)
		require.NoError(t, err)
		losses = append(losses, float(t, logs, "loss"))
	}
	require.InDelta(t, losses[0], losses[1], 1e-6)

	outputs := stepper(t, managed.TestStep(func(b *managed.Builder) { b.Output("twice", graph.MulScalar(b.Field("x"), 2)) }))
	_, _, err = outputs.Step(t.Context(), state, short)
	require.NoError(t, err)
}
