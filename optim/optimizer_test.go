package optim_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	gomlx "github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// Used by GoMLX, for example its trainer, an optimizer differentiates by itself. Clear does not change the model.
func TestOptimizer_inGoMLXsHands(t *testing.T) {
	r := plugintest.CPU(t)
	store := model.NewStore()
	o := optim.New(0.25, optim.Adam{}, optim.Momentum{Decay: 0.5})
	exec, err := model.NewExec(r, store, func(scope *model.Scope, g *graph.Graph) *graph.Node {
		store.SetTraining(g, true)
		w := scope.VariableWithValue("w", float32(1))
		loss := graph.Square(w.NodeValue(g))
		o.UpdateGraph(scope, g, loss)
		return loss
	})
	require.NoError(t, err)
	defer exec.Finalize()
	var losses []float32
	for range 5 {
		out, err := exec.Call1()
		require.NoError(t, err)
		losses = append(losses, out.Value().(float32))
	}
	require.Less(t, losses[4], losses[0])
	require.Equal(t, int64(5), store.GetVariable("/global_step").MustValue().Value())
	require.NoError(t, o.Clear(store.RootScope()))
	var left []string
	for v := range store.IterVariables() {
		left = append(left, v.Path())
	}
	require.ElementsMatch(t, []string{"/w", "/global_step"}, left)
}

// GoMLX's trainer passes the sum of the main loss and the regularization, also when it accumulates gradients itself.
// lazo's Adam has the same result as GoMLX's.
func TestOptimizer_inGoMLXsTrainer(t *testing.T) {
	r := plugintest.CPU(t)
	x, y := tensors.FromFlatDataAndDimensions(made(12, 5, 11, 8, 0), 4, 3), tensors.FromFlatDataAndDimensions(made(4, 3, 7, 4, 0), 4, 1)
	weights := func(rule optimizer.Interface, together int, decay float64) []float32 {
		store := model.NewStore()
		trainer := gomlx.NewTrainer(r, store, func(scope *model.Scope, x *graph.Node) *graph.Node {
			w := scope.WithInitializer(initializer.One).VariableWithShape("w", shapeOf(dtypes.Float32, 3, 1))
			if decay > 0 {
				regularizer.L2(decay)(x.Graph(), w)
			}
			return graph.MatMul(x, w.NodeValue(x))
		}, loss.MeanSquaredError, rule, nil, nil)
		if together > 1 {
			require.NoError(t, trainer.AccumulateGradients(together))
		}
		for range 20 {
			batch, err := gomlx.Batch{Inputs: []*tensors.Tensor{x}, Labels: []*tensors.Tensor{y}}.Clone()
			require.NoError(t, err)
			metrics, err := trainer.TrainStep(batch)
			require.NoError(t, err)
			for _, m := range metrics {
				require.NoError(t, m.FinalizeAll())
			}
		}
		require.Equal(t, int64(20/together), store.GetVariable("/global_step").MustValue().Value())
		flat, err := tensors.CopyFlatData[float32](store.GetVariable("/w").MustValue())
		require.NoError(t, err)
		store.Finalize()
		return flat
	}
	ours := func() optimizer.Interface { return optim.New(0.125, optim.Adam{}) }
	theirs := func() optimizer.Interface { return optimizer.Adam().LearningRate(0.125).Epsilon(1e-8).Done() }
	for _, together := range []int{1, 2} {
		got := weights(ours(), together, 0.5)
		require.LessOrEqual(t, farthest(t, weights(theirs(), together, 0.5), got), 1e-5, together)
		require.Greater(t, farthest(t, weights(ours(), together, 0), got), 0.05, "the regularisation counts")
	}
}

// The host changes the rate without a compilation, also before the first step.
func TestSetLearningRate_ofRules(t *testing.T) {
	r := plugintest.CPU(t)
	batches := slopes(t, 20, 1)
	for _, name := range []string{"sgd", "adam", "lion", "adafactor", "muon", "accumulate clipped", "frozen", "groups"} {
		t.Run(name, func(t *testing.T) {
			state, step := newState(t, r, rules[name]()), trainStep(t, bowl)
			require.NoError(t, state.SetLearningRate(0))
			start := append(made(24, 5, 11, 8, 0), made(4, 3, 7, 4, 0)...)
			train(t, step, state, batches)
			require.Equal(t, start, parameters(t, state), "a rate of 0")
			require.NoError(t, state.SetLearningRate(0.25))
			train(t, step, state, batches)
			rate, err := state.LearningRate()
			require.NoError(t, err)
			require.Equal(t, 0.25, rate)
			require.NotEqual(t, start, parameters(t, state))
			require.Len(t, step.StableHLO(), 1)
		})
	}
}

// A scaled optimizer has the results of the original, and one that is scaled already is returned unchanged.
func TestScaled(t *testing.T) {
	r := plugintest.CPU(t)
	plain := optim.New(0.02, optim.Adam{})
	scaled, err := plain.Scaled()
	require.NoError(t, err)
	require.True(t, scaled.ScalesLoss())
	for _, chain := range []optim.Chain{{optim.LossScale{Start: 4}}, {optim.Chain{optim.LossScale{Start: 4}}}} {
		has := optim.New(1, chain...)
		same, err := has.Scaled()
		require.NoError(t, err)
		require.Same(t, has, same)
	}
	batches := slopes(t, 20, 1)
	want := run(t, r, plain, batches)
	state := newState(t, r, scaled)
	train(t, trainStep(t, func(b *managed.Builder) { b.Loss("loss", bowlLoss(b)) }), state, batches)
	require.LessOrEqual(t, farthest(t, parameters(t, want), parameters(t, state)), tolerance)
	require.Equal(t, 20.0, number(t, state, "/optimizers/loss_scale/good"))
}
