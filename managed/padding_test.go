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

// GoMLX's own layer, which knows no padding, is refused where it would count it; a test step has averages, and takes
// both.
func TestR05_otherBatchNormIsRefused(t *testing.T) {
	batch, err := data.Pad(first(t, line(t, 6).Batches(6)), 8)
	require.NoError(t, err)
	build := normed(0, func(scope *model.Scope, x *graph.Node) *graph.Node {
		return norm.BatchNorm(scope, x, -1).Momentum(0.6).Epsilon(0.02).Done()
	})
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	_, _, err = stepper(t, managed.TrainStep(build)).Step(t.Context(), state, batch)
	require.ErrorContains(t, err, "norm.BatchNorm in /batch_normalization: the batch is padded")
	_, _, err = stepper(t, managed.TestStep(build)).Step(t.Context(), state, batch)
	require.NoError(t, err)
}

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
