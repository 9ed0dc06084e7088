//lazo:norace
package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// stack is a residual network of wide blocks with dropout and statistics. The inner values of the blocks are kept for
// the gradient, or computed again (GoMLX's Checkpoint).
func stack(again bool) managed.Build {
	return func(b *managed.Builder) {
		x := layers.Dense(b.Scope().In("first"), b.Field("x"), true, 32)
		for i := range 4 {
			scope, h := b.Scope().In("block_%d", i), x
			if again {
				h = h.Checkpoint()
			}
			h = activation.Gelu(layers.Dense(scope.In("up"), h, true, 128))
			h = managed.FullPrecision(scope, h, func(h *graph.Node) *graph.Node { return norm.BatchNorm(scope.In("norm"), h, -1).Done() })
			h = layers.Dropout(scope, h, graph.Scalar(b.Graph(), h.DType(), 0.1))
			h = layers.Dense(scope.In("down"), h, true, 32)
			if again {
				h = h.StopCheckpoint()
			}
			x = graph.Add(x, h)
		}
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.ToOutputType(b.Field("y")), b.ToOutputType(layers.Dense(b.Scope().In("last"), x, true, 1)))))
	}
}

// The gradient of a block that is computed again is that of one that is kept, with the same random numbers and
// statistics, and takes less memory.
//
//lazo:norace
func TestCheckpointedBlocks(t *testing.T) {
	four, err := strategies.DataParallel(plugintest.Devices(t, 4), strategies.Parallel{})
	require.NoError(t, err)
	set := line(t, 512)
	for _, row := range []struct {
		name     string
		strategy strategies.Strategy
		policy   optim.Policy
		near     float64 // relative
		memory   float64 // at most this share
	}{
		{"float32", strategies.Jit(plugintest.CPU(t)), float32s, 1e-6, 0.55},
		{"bfloat16", strategies.Jit(plugintest.CPU(t)), optim.MixedBFloat16(), 1e-2, 0.5},
		// A divided program keeps less of what it could compute again: its axes are not joined.
		{"four devices", four, float32s, 1e-6, 0.9},
	} {
		t.Run(row.name, func(t *testing.T) {
			run := func(again bool) (losses []float64, temporary int64, statistics []float32, random []byte) {
				state, err := managed.New(row.strategy, managed.WithOptimizer(optim.New(1e-3)), managed.WithPolicy(row.policy))
				require.NoError(t, err)
				defer func() { require.NoError(t, state.Close()) }()
				step := stepper(t, managed.TrainStep(stack(again)))
				losses = learn(t, state, step, set.Batches(512), 3)
				memory, err := step.Memory()
				require.NoError(t, err)
				return losses, memory[0].Temporary, floats(t, state, "/block_3/norm/batch_normalization/mean"), bits(t, state)["/#rngState"]
			}
			want, kept, statistics, random := run(false)
			got, again, same, drawn := run(true)
			for i := range want {
				require.InEpsilon(t, want[i], got[i], row.near, "step %d", i)
			}
			require.InDeltaSlice(t, statistics, same, 10*row.near, "changed once in a step")
			require.Equal(t, random, drawn, "random numbers are drawn as without")
			t.Logf("temporary memory %d KiB, computed again %d KiB (%.0f %%); losses %v and %v", kept>>10, again>>10, 100*float64(again)/float64(kept), want, got)
			require.Less(t, float64(again), row.memory*float64(kept))
		})
	}
}
