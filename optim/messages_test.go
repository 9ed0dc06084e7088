package optim_test

import (
	"math"
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
	"github.com/lazo-ml/lazo/optim"
)

// An invalid setting is an error when the step is compiled, which says what was expected.
func TestRules_refuse(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		name  string
		rate  float64
		chain []optim.Transformation
		want  string
	}{
		{"rate", 0, nil, "the learning rate is 0, expected a positive, finite number"},
		{"rate beyond float32", 1e300, nil, "the learning rate is 1e+300, expected a positive, finite number of float32"},
		{"infinite rate", math.Inf(1), nil, "the learning rate is +Inf, expected a positive, finite number"},
		{"nil", 1, []optim.Transformation{optim.Adam{}, nil}, "link 2 of a chain of 2 is nil"},
		{"momentum", 1, []optim.Transformation{optim.Momentum{Decay: 1}}, "the momentum is 1, expected a number from 0 to below 1"},
		{"adam", 1, []optim.Transformation{optim.Adam{Beta2: 2}}, "Adam.Beta2 is 2, expected a number from 0 to below 1"},
		{"lion", 1, []optim.Transformation{optim.Lion{Beta1: -1}}, "Lion.Beta1 is -1, expected a number from 0 to below 1"},
		{"rmsprop", 1, []optim.Transformation{optim.RMSProp{Epsilon: math.NaN()}}, "RMSProp.Epsilon is NaN, expected a positive, finite number"},
		{"adagrad", 1, []optim.Transformation{optim.Adagrad{Start: -1}}, "Adagrad.Start is -1, expected a positive, finite number"},
		{"adadelta", 1, []optim.Transformation{optim.Adadelta{Decay: 1}}, "Adadelta.Decay is 1, expected a number from 0 to below 1"},
		{"nadam", 1, []optim.Transformation{optim.Nadam{Beta2: -1}}, "Nadam.Beta2 is -1, expected a number from 0 to below 1"},
		{"decay", 1, []optim.Transformation{optim.WeightDecay{Rate: -0.1}}, "WeightDecay.Rate is -0.1, expected a finite number that is not negative"},
		{"clip", 1, []optim.Transformation{optim.Clip{Value: 0}}, "the limit of clip is 0, expected a positive, finite number"},
		{"norm", 1, []optim.Transformation{optim.Clip{GlobalNorm: -1}}, "the limit of clip_by_global_norm is -1, expected a positive, finite number"},
		{"two limits", 1, []optim.Transformation{optim.Clip{Value: 1, Norm: 2}}, "Clip{Value:1 Norm:2 GlobalNorm:0}: expected exactly one limit"},
		{"norm of each", 1, []optim.Transformation{optim.Clip{Norm: -2}}, "the limit of clip_by_norm is -2, expected a positive, finite number"},
		{"accumulate", 1, []optim.Transformation{optim.Accumulate(0)}, "Accumulate is given 0, expected 1 batch or more"},
		{"muon", 1, []optim.Transformation{optim.Muon{}}, "Muon: /b is (Float32)[4], expected a matrix: put it into a group of another rule"},
		{"no group", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "m", Match: optim.Matrices})}, "/b, (Float32)[4], is in no group: add a last group without a Match"},
		{"groups of one name", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "a", Match: optim.Under("/b")}, optim.Group{Name: "a_2"}, optim.Group{Name: "a"})},
			`group 3 has the name "a", as an earlier group has: expected another name, since the rates of both would be logged under one name; with the name "a_3" it finds`},
		{"name of a group", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "a/b"})}, `group 1 has the name "a/b", expected one without "/"`},
		{"two averages", 1, []optim.Transformation{optim.Average{Decay: 0.9}, optim.Average{Decay: 0.8}}, "average is at /optimizers/average_2; it may be in a chain once, and not inside a group"},
		{"scale in a group", 1, []optim.Transformation{optim.Groups(optim.Group{Name: "a", Chain: optim.Chain{optim.LossScale{}}})}, "loss_scale is at /optimizers/groups/a/loss_scale; it may be in a chain once, and not inside a group"},
		{"scale after another", 1, []optim.Transformation{optim.Clip{Norm: 1}, optim.LossScale{}}, "LossScale is link 2 of the chain, after clip_by_norm, which would see scaled gradients: put it first"},
		{"average", 1, []optim.Transformation{optim.Average{}}, "Average.Decay is 0, so the average would be the parameter: expected a share such as 0.999"},
		{"scale", 1, []optim.Transformation{optim.Scale(math.NaN())}, "Scale is given NaN, expected a finite number"},
		{"adafactor", 1, []optim.Transformation{optim.Adafactor{Factored: -1}}, "Adafactor.Factored is -1, expected a positive number"},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := newState(t, r, optim.New(row.rate, row.chain...))
			_, _, err := trainStep(t, bowl).StepBlock(t.Context(), state, slopes(t, 1, 1))
			require.ErrorContains(t, err, row.want)
		})
	}
}

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

// byLoss is an optimizer of GoMLX's interface that takes no gradients.
type byLoss struct{ optimizer.Interface }

// A GoMLX optimizer that lazo cannot use is an error, and any is one where a chain is needed.
func TestGoMLX_refuses(t *testing.T) {
	require.Nil(t, optim.GoMLX(nil))
	state := newState(t, plugintest.CPU(t), optim.GoMLX(byLoss{}))
	_, _, err := trainStep(t, bowl).StepBlock(t.Context(), state, slopes(t, 1, 1))
	require.ErrorContains(t, err, "optimizer optim_test.byLoss cannot be given gradients (it needs UpdateGraphWithGradients, as all of GoMLX's have)")

	o := optim.GoMLX(optimizer.Adam().Done())
	_, err = o.Scaled()
	require.EqualError(t, err, "optim: optimizer *optimizer.adam cannot scale losses, expected a chain of package optim: use optim.New")
	require.True(t, math.IsNaN(o.RateAt(0)))
	factors, err := o.FactorsAt(0)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"": 1}, factors)
}
