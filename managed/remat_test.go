package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	mlcontext "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/layers/batchnorm"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// stack is a residual network of wide blocks with dropout and statistics.
func stack(remat bool) managed.Build {
	return func(b *managed.Builder) {
		x := layers.Dense(b.Vars().In("first"), b.Node("x"), true, 32)
		for i := range 4 {
			vars := b.Vars().Inf("block_%d", i)
			block := func(x *managed.Node) *managed.Node {
				h := activations.Gelu(layers.Dense(vars.In("up"), x, true, 128))
				h = managed.FullPrecision(vars, h, func(h *managed.Node) *managed.Node { return batchnorm.New(vars.In("norm"), h, -1).Done() })
				h = layers.Dropout(vars, h, graph.Scalar(b.Graph(), h.DType(), 0.1))
				return layers.Dense(vars.In("down"), h, true, 32)
			}
			if remat {
				x = graph.Add(x, managed.Remat(vars, x, block))
			} else {
				x = graph.Add(x, block(x))
			}
		}
		b.Loss("loss", managed.MeanSquaredError(b.Out(b.Node("y")), b.Out(layers.Dense(b.Vars().In("last"), x, true, 1))))
	}
}

// The gradient of a block that is computed again is that of one that is kept, with the same random numbers and statistics, and
// takes less memory.
func TestRemat(t *testing.T) {
	four, err := strategies.DataParallel(devices(t, 4))
	require.NoError(t, err)
	set := line(t, 512)
	for _, row := range []struct {
		name     string
		strategy strategies.Strategy
		policy   optim.Policy
		near     float64 // relative
		memory   float64 // at most this share
	}{
		{"float32", strategies.Jit(runtime(t)), optim.FullPrecision(), 1e-6, 0.5},
		{"bfloat16", strategies.Jit(runtime(t)), optim.MixedBFloat16(), 1e-2, 0.7},
		{"four devices", four, optim.FullPrecision(), 1e-5, 0.7},
	} {
		t.Run(row.name, func(t *testing.T) {
			run := func(remat bool) (losses []float64, temporary int64, values map[string][]byte) {
				state, err := managed.New(row.strategy, managed.WithOptimizer(optim.New(1e-3)), managed.WithPolicy(row.policy))
				require.NoError(t, err)
				defer func() { require.NoError(t, state.Close()) }()
				step := stepper(t, managed.TrainStep(stack(remat)))
				losses = learn(t, state, step, set.Batches(512, data.Forever()), 3)
				memory, err := step.Memory()
				require.NoError(t, err)
				return losses, memory[0].Temporary, bits(t, state)
			}
			const random = "/" + mlcontext.RNGStateVariableName
			want, kept, values := run(false)
			require.Contains(t, values, random)
			got, again, same := run(true)
			for i := range want {
				require.InEpsilon(t, want[i], got[i], row.near, "step %d", i)
			}
			require.Equal(t, values[random], same[random], "random numbers are drawn as without")
			t.Logf("temporary memory %d KiB, with Remat %d KiB (%.0f %%); losses %v and %v", kept>>10, again>>10, 100*float64(again)/float64(kept), want, got)
			require.Less(t, float64(again), row.memory*float64(kept))
		})
	}
}

func TestRemat_isTheBlockItselfInATest(t *testing.T) {
	r := runtime(t)
	text := func(remat bool) string {
		step := stepper(t, managed.TestStep(stack(remat)))
		one(t, step, newState(t, r), first(t, line(t, 64).Batches(16)))
		return step.StableHLO()[0]
	}
	require.Equal(t, text(false), text(true))
}

func TestRemat_errors(t *testing.T) {
	r := runtime(t)
	for _, row := range []struct {
		name  string
		build managed.Build
		want  string
	}{
		{"something from outside", func(b *managed.Builder) {
			h := layers.Dense(b.Vars().In("h"), b.Node("x"), true, 4)
			b.Loss("loss", managed.Remat(b.Vars(), b.Node("x"), func(x *managed.Node) *managed.Node { return graph.Mul(x, h) }))
		}, "Remat: the block takes "},
		{"a report", func(b *managed.Builder) {
			b.Loss("loss", managed.Remat(b.Vars(), b.Node("x"), func(x *managed.Node) *managed.Node {
				b.Metric("mean", x)
				return layers.Dense(b.Vars().In("h"), x, true, 4)
			}))
		}, "Remat: the block reports something"},
		{"labels", func(b *managed.Builder) {
			managed.Remat(b.Vars(), graph.ConvertDType(b.Node("x"), dtypes.Int32), func(x *managed.Node) *managed.Node { return x })
		}, "Remat: x is (Int32)[16 1], expected floating-point numbers"},
	} {
		state := newState(t, r, managed.WithOptimizer(sgd()))
		_, _, err := stepper(t, managed.TrainStep(row.build)).Step(t.Context(), state, first(t, line(t, 64).Batches(16)))
		require.ErrorContains(t, err, row.want, row.name)
	}
}
