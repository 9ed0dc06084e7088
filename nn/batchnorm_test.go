package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// Means far from 0 cost no digits: the variance is that of the deviations. The Go backend computes the same.
func TestBatchNorm_meansFarFromZero(t *testing.T) {
	for name, open := range plugintest.Platforms {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			for _, mean := range []float64{0, 10, 1000} {
				const rows = 64
				random := rand.New(rand.NewPCG(1, uint64(mean)))
				x := make([]float32, rows)
				var sum, squares float64
				for i := range x {
					x[i] = float32(mean + random.NormFloat64())
					sum += float64(x[i])
				}
				for _, v := range x {
					squares += (float64(v) - sum/rows) * (float64(v) - sum/rows)
				}
				state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(optim.New(1e-9)))
				require.NoError(t, err)
				step := managed.TrainStep(func(b *managed.Builder) {
					y := nn.BatchNorm{}.Apply(b.Scope(), b.Field("x"))
					b.Loss("loss", y)
					b.Output("y", y)
				})
				_, logs, err := step.Step(t.Context(), state, data.Batch{Fields: []data.Field{data.X(x, rows, 1)}})
				require.NoError(t, err)
				out, err := logs.Get("y")
				require.NoError(t, err)
				a, err := out.Any()
				require.NoError(t, err)
				array, err := managed.ArrayOf(a.(*tensors.Tensor))
				require.NoError(t, err)
				y := array.Flat.([]float32)
				for i, v := range x {
					want := (float64(v) - sum/rows) / math.Sqrt(squares/rows+1e-3)
					require.InDelta(t, want, y[i], 2e-7*(10+mean), "mean %g", mean)
				}
				require.NoError(t, step.Close())
				require.NoError(t, state.Close())
			}
		})
	}
}
