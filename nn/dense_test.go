package nn_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// A scope's penalty on weights (regularizer.ParamL2) applies only to kernels, as with GoMLX's layers.
func TestPenalty(t *testing.T) {
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(func(b *managed.Builder) {
		s := b.Scope().In("dense")
		s.SetParam(regularizer.ParamL2, 0.5)
		y := nn.Dense{Units: 3, Kernel: nn.Constant(2), Bias: nn.Initial("ones")}.Apply(s, b.Field("x"))
		b.Loss("loss", graph.ReduceAllMean(y))
	})
	defer func() { require.NoError(t, step.Close()) }()
	set := must.M1(data.New(data.X([]float32{1, 2}, 1, 2)))
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(1))
	require.NoError(t, err)
	_, penalty, err := result.History.Series("aux_loss")
	require.NoError(t, err)
	require.Equal(t, []float64{0.5 * 6 * 4}, penalty)
}
