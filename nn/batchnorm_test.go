package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Means far from 0 cost no digits: the variance is that of the deviations, also in GoMLX's layer. The Go backend
// computes the same.
func TestBatchNorm_meansFarFromZero(t *testing.T) {
	for name, open := range plugintest.Platforms {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			layers := []func(scope *model.Scope, x *graph.Node) *graph.Node{nn.BatchNorm{}.Apply}
			if name != xla.Go { // it lacks GoMLX's operation
				layers = append(layers, func(scope *model.Scope, x *graph.Node) *graph.Node { return norm.BatchNorm(scope, x, -1).Done() })
			}
			for i := range 3 * len(layers) {
				const rows = 64
				mean, layer := []float64{0, 10, 1000}[i%3], layers[i/3]
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
					y := layer(b.Scope(), b.Field("x"))
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
