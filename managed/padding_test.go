package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// normed is a model with a normalisation of the batch, by images of 2×2, in each of whose examples the padding would
// show.
func normed(penalty float64, normal func(scope *model.Scope, x *graph.Node) *graph.Node) managed.Build {
	return func(b *managed.Builder) {
		b.Scope().SetParam(regularizer.ParamL2, penalty)
		x := graph.Reshape(layers.Dense(b.Scope().In("in"), b.Field("x"), true, 12), -1, 2, 2, 3)
		y := layers.Dense(b.Scope().In("out"), graph.Reshape(graph.Tanh(normal(b.Scope(), x)), -1, 12), true, 1)
		b.Loss("loss", graph.Square(graph.Sub(b.Field("y"), y)))
	}
}

// R05: a padded batch trains a normalisation of the batch to what its examples alone do: losses, averages, parameters.
func TestR05_paddingStaysOutOfBatchNorm(t *testing.T) {
	six := first(t, line(t, 6).Batches(6))
	eight, err := data.Pad(six, 8)
	require.NoError(t, err)
	for name, options := range map[string][]managed.Option{"float32": nil, "bfloat16": {managed.WithPolicy(optim.MixedBFloat16())}} {
		t.Run(name, func(t *testing.T) {
			var values [3]map[string][]float32
			var losses [3]float64
			for i, batch := range []data.Batch{six, eight, six} {
				penalty := 0.01
				if options != nil {
					penalty = 0 // GoMLX adds up penalties of one type alone
				}
				build := normed(penalty, func(scope *model.Scope, x *graph.Node) *graph.Node {
					return managed.FullPrecision(scope, x, func(x *graph.Node) *graph.Node {
						if i == 2 {
							return norm.BatchNorm(scope, x, -1).Momentum(0.6).Epsilon(0.02).Done()
						}
						return nn.BatchNorm{Momentum: 0.6, Epsilon: 0.02}.Apply(scope, x)
					})
				})
				state := newState(t, plugintest.CPU(t), append(options, managed.WithOptimizer(optim.New(0.1, optim.Adam{})))...)
				step := stepper(t, managed.TrainStep(build))
				for range 5 {
					_, logs, err := step.Step(t.Context(), state, batch)
					require.NoError(t, err)
					losses[i] = float(t, logs, "loss")
				}
				values[i] = map[string][]float32{}
				for _, name := range state.Names() {
					if len(name) > 20 && name[:20] == "/batch_normalization" || name[:3] == "/in" || name[:4] == "/out" {
						values[i][name] = floats(t, state, name)
					}
				}
			}
			near := 1e-5
			if options != nil {
				near = 2e-2
			}
			require.Len(t, values[0], 9)
			for _, i := range []int{1, 2} {
				require.InDelta(t, losses[0], losses[i], near)
				for name, want := range values[0] {
					require.InDeltaSlice(t, want, values[i][name], near, name)
				}
			}
		})
	}
}
