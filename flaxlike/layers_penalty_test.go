package flaxlike_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// Penalties of L1 and L2 are those of Keras 3.15 (kernel_regularizer; a dense layer that is used twice has one
// penalty): the loss before and after a step of gradient descent, and the weights.
func TestL1_L2_asKeras(t *testing.T) {
	twice := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		dense := nn.Dense{Units: 2}
		h := dense.Apply(scope.In("d"), x)
		return dense.Apply(scope.Shared("d"), h)
	})
	m := newModel(t, nn.Sequential{nn.L2{Rate: 0.1, Layers: []nn.Layer{twice}}, nn.L1{Rate: 0.05, Layers: []nn.Layer{nn.L2{Rate: 0.02, Layers: []nn.Layer{nn.Dense{Units: 1}}}}}},
		flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(0.1), flaxlike.WithBatchSize(4))
	set, err := data.New(data.X([]float32{1, 2, 0.5, -1, 2, 0.25, -1, 1}, 4, 2), data.Y([]float32{1, 0, 2, -1}, 4, 1))
	require.NoError(t, err)
	require.NoError(t, m.Init(t.Context(), first(t, set, 4)))
	const shared, last = "/model/0/0/d/kernel", "/model/1/0/0/kernel"
	require.NoError(t, m.SetValue(shared, tensors.FromValue([][]float32{{0.5, -0.3}, {0.2, 0.4}})))
	require.NoError(t, m.SetValue(last, tensors.FromValue([][]float32{{0.7}, {-0.6}})))
	figures, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 0.8538137078285217, figures["loss"], 1e-6)
	_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{InOrder: true}))
	require.NoError(t, err)
	for name, want := range map[string][]float32{shared: {0.6756051, -0.38063428, 0.18564981, 0.4151294}, last: {0.7383012, -0.643794}} {
		v, err := m.Value(name)
		require.NoError(t, err)
		got, err := tensors.CopyFlatData[float32](v)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, got, 1e-6, name)
	}
	figures, err = m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 0.45471900701522827, figures["loss"], 1e-6)

	m = newModel(t, nn.L1{Rate: math.NaN(), Layers: []nn.Layer{nn.Dense{Units: 1}}}, flaxlike.WithLoss("mse"))
	require.ErrorContains(t, m.Init(t.Context(), first(t, set, 4)), "L1 in /model: the rate is NaN, expected a finite number of at least 0")
}
