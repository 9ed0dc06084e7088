package managed_test

import (
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func stateOn(t *testing.T, on strategies.Strategy, options ...managed.Option) *managed.State {
	t.Helper()
	state, err := managed.New(on, append(options, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	return state
}

func batchesOfEight(t *testing.T) data.Batches {
	return line(t, 64).Batches(8)
}

func described(t *testing.T, on strategies.Strategy) {
	state := stateOn(t, on)
	step, test := managed.TrainStep(sixteen), managed.TestStep(sixteen)
	t.Cleanup(func() { require.NoError(t, step.Close()); require.NoError(t, test.Close()) })
	batch := first(t, batchesOfEight(t))
	require.NoError(t, step.Prepare(t.Context(), state, batch))
	require.Zero(t, step.CompileTime(), "a state is made without a compilation")
	require.Contains(t, state.Names(), "/dense/weights")
	require.Equal(t, 32, state.Parameters())

	p, err := step.Program(t.Context(), state, batch)
	require.NoError(t, err)
	m, err := p.Memory()
	require.NoError(t, err)
	require.EqualValues(t, len(p.StableHLO()), m.Code)
	require.Positive(t, step.CompileTime())
	require.NoError(t, test.Prepare(t.Context(), state, batch), "its variables come later")

	_, logs, err := step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	_, err = logs.Float("loss")
	require.ErrorIs(t, err, xla.ErrNotRun)
	_, all, err := step.StepBlock(t.Context(), state, []data.Batch{batch, batch, batch})
	require.NoError(t, err)
	require.Len(t, all, 3)
	_, _, err = test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	require.NoError(t, state.Wait())

	_, err = state.Value("/dense/weights")
	require.ErrorIs(t, err, xla.ErrNotRun)
	t.Log(err)
	require.NoError(t, state.SetValue("/dense/biases", tensors.FromValue(make([]float32, 16))))
	_, _, err = step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	_, err = state.Clone(t.Context(), on)
	require.ErrorIs(t, err, xla.ErrNotRun)
	require.ErrorIs(t, step.Export(t.TempDir()+"/step", state, batch, managed.ExportOptions{}), xla.ErrNotRun)
	require.NoError(t, step.Export(t.TempDir()+"/step", state, batch, managed.ExportOptions{NoWeights: true}))
	require.NoError(t, state.DumpXLA(t.TempDir()))
}

// drawn counts the initial values that were drawn.
var drawn atomic.Int64

// sixteen is a layer whose parameters eight devices divide.
func sixteen(b *managed.Builder) {
	undrawn := b.Scope().WithInitializer(func(g *graph.Graph, shape shapes.Shape) *graph.Node {
		drawn.Add(1)
		return graph.Zeros(g, shape)
	})
	h := layers.Dense(undrawn, b.Field("x"), true, 16)
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), graph.ReduceAndKeep(h, graph.ReduceMean, 1))))
}
