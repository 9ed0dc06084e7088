package managed_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/export"
)

// A step with a constant of 1.2 MB trains to the same under each strategy, in blocks too, and its program is short.
// Where a program goes into a folder, the constant goes with it.
func TestR40_largeConstantInAStep(t *testing.T) {
	r := plugintest.Devices(t, 2)
	flat := make([]float32, 300_000)
	for i := range flat {
		flat[i] = float32(i%7) / 7
	}
	table := tensors.FromFlatDataAndDimensions(flat, len(flat)/4, 4)
	model := func(b *managed.Builder) *graph.Node {
		row := graph.Slice(graph.Const(b.Graph(), table), graph.AxisElem(777))
		hidden := layers.Dense(b.Scope().In("hidden"), b.Field("x"), true, 4)
		return graph.ReduceAndKeep(graph.Mul(hidden, row), graph.ReduceSum, -1)
	}
	parallel, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	last := map[string]float64{}
	for name, on := range map[string]strategies.Strategy{"jit": strategies.Jit(r), "parallel": parallel, "eager": strategies.Eager(r)} {
		state, err := managed.New(on, managed.WithOptimizer(sgd()), managed.WithSeed(3))
		require.NoError(t, err)
		step := managed.TrainStep(func(b *managed.Builder) {
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), model(b))))
		})
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, line(t, 64).Batches(16), loop.Until(loop.Steps(20)))
		require.NoError(t, err, name)
		last[name], err = result.History.Last("loss")
		require.NoError(t, err)
		for _, text := range step.StableHLO() {
			require.True(t, len(text) < 100_000 || name == "eager", name) // whose text is what others would compile
		}
		if name == "jit" {
			dir := filepath.Join(t.TempDir(), "model")
			batch := first(t, line(t, 64).Batches(16))
			require.NoError(t, managed.ExportModel(dir, state, batch, func(b *managed.Builder) map[string]*graph.Node {
				return map[string]*graph.Node{"y": model(b)}
			}, managed.ExportOptions{Example: true}))
			p, err := export.Load(dir)
			require.NoError(t, err)
			require.Greater(t, len(p.Text), 4*len(flat))
		}
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
	require.InDelta(t, last["jit"], last["parallel"], 1e-5)
	require.InDelta(t, last["jit"], last["eager"], 1e-5)
}
