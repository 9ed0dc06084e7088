package managed_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
)

// forGoMLX is a model written for GoMLX's trainer, which knows nothing of lazo: hyperparameters, the graph's store,
// losses of its own, dropout, statistics, blocks that are computed again, a limit after each step, a layer used twice.
func forGoMLX(scope *model.Scope, x *graph.Node) *graph.Node {
	g := x.Graph()
	scope.SetParam("width", 8)
	scope.SetParam(layers.ParamDropoutRate, 0.2)
	hidden := scope.In("hidden")
	hidden.SetParam(regularizer.ParamL2, 1e-2)
	h := layers.Dense(hidden, x, true, model.GetParamOr(hidden, "width", 0)).Checkpoint()
	h = norm.BatchNorm(scope.In("norm"), h, -1).Done()
	h = layers.DropoutFromScope(scope, activation.Swish(h)).StopCheckpoint()
	for range 2 {
		h = graph.Add(h, activation.Swish(layers.Dense(scope.At("twice"), h, true, 8)))
	}
	if scope.IsTraining(g) {
		train.AddMainLoss(graph.MulScalar(graph.ReduceAllMean(graph.Square(h)), 1e-2))
	}
	train.AddRegularizationLoss(graph.MulScalar(graph.ReduceAllSum(graph.Abs(h)), 1e-4))
	out := layers.Dense(scope.In("out"), h, true, 1)
	train.AddPerStepUpdateGraphFn(scope.In("limit"), g, func(_ *model.Scope, g *graph.Graph) {
		v := model.GetStore(g).GetVariable("/out/dense/weights")
		v.SetNodeValue(graph.ClipScalar(v.NodeValue(g), -0.5, 0.5))
	})
	return out
}

// A model function written for GoMLX's trainer trains equally in a managed step, and under that trainer on lazo's
// runtime: each loss counts once, and is reported.
//
//lazo:norace
func TestGoMLXModel(t *testing.T) {
	r, batch := plugintest.CPU(t), first(t, line(t, 16).Batches(16))
	rule := func() *optim.Optimizer { return optim.GoMLX(optimizer.Adam().LearningRate(0.02).Done()) }
	build := func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.ToOutputType(b.Field("y")), b.ToOutputType(forGoMLX(b.Scope(), b.Field("x"))))))
	}
	state := newState(t, r, managed.WithOptimizer(rule()), managed.WithSeed(5))
	step, test := stepper(t, managed.TrainStep(build)), stepper(t, managed.TestStep(build))
	require.NoError(t, step.Prepare(t.Context(), state, batch))
	store := model.NewStore()
	require.NoError(t, store.SetRNGStateFromSeed(5))
	trainer := train.NewTrainer(r, store, forGoMLX, loss.MeanSquaredError, rule(), nil, nil)
	for _, name := range state.Names() { // a device draws other initial values than the host, of which managed has them
		value, err := state.Value(name)
		require.NoError(t, err)
		v, err := store.CreateVariable(name, value)
		require.NoError(t, err)
		require.NoError(t, v.SetValuePreservingOld(value))
	}
	theirs := func(do func(train.Batch) ([]*tensors.Tensor, error)) float64 {
		tensorOf := func(field int) []*tensors.Tensor {
			return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(batch.Fields[field].Array.Flat.([]float32), 16, 1)}
		}
		metrics, err := do(train.Batch{Inputs: tensorOf(0), Labels: tensorOf(1)})
		require.NoError(t, err)
		return float64(tensors.ToScalar[float32](metrics[0]))
	}
	ours := func(step *managed.Stepper) (sum float64) {
		_, logs, err := step.Step(t.Context(), state, batch)
		require.NoError(t, err)
		for e := range logs.All() {
			sum += float(t, logs, e.Path())
		}
		return sum
	}
	for n := range 20 {
		require.InEpsilon(t, theirs(trainer.TrainStep), ours(step), 1e-5, "step %d", n)
	}
	require.InEpsilon(t, theirs(trainer.EvalStep), ours(test), 1e-5)
	for v := range store.IterVariables() {
		if v.DType() == dtypes.Float32 && v.Trainable {
			require.InDeltaSlice(t, tensors.MustCopyFlatData[float32](v.MustValue()), floats(t, state, v.Path()), 1e-5, v.Path())
		}
	}
	limited := 0
	for _, w := range floats(t, state, "/out/dense/weights") {
		require.LessOrEqual(t, w, float32(0.5))
		if w == 0.5 || w == -0.5 {
			limited++
		}
	}
	require.Positive(t, limited, "the update after each step was made")

	_, logs, err := step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	for _, name := range []string{"loss", "main_loss", "aux_loss"} {
		require.Positive(t, float(t, logs, name), name)
	}
	_, logs, err = test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	_, err = logs.Get("main_loss")
	require.Error(t, err, "in training only")
}

// Under a policy, where the step's function is called twice, GoMLX's losses count once too.
func TestWithPolicy_lossesOfGoMLX(t *testing.T) {
	r := plugintest.CPU(t)
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		hidden := b.Scope().In("hidden")
		hidden.SetParam(regularizer.ParamL2, 1e-2)
		h := layers.Dense(hidden, b.Field("x"), true, 8)
		train.AddMainLoss(graph.ReduceAllMean(graph.Square(h)))
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.ToOutputType(b.Field("y")), b.ToOutputType(layers.Dense(b.Scope().In("out"), h, true, 1)))))
	}))
	var want loop.Logs
	for _, policy := range []optim.Policy{float32s, optim.MixedBFloat16()} {
		state := newState(t, r, managed.WithOptimizer(sgd()), managed.WithPolicy(policy))
		_, logs, err := step.Step(t.Context(), state, first(t, line(t, 16).Batches(16)))
		require.NoError(t, err)
		for _, name := range []string{"loss", "main_loss", "aux_loss"} {
			if policy.Compute == dtypes.BFloat16 {
				require.InEpsilon(t, float(t, want, name), float(t, logs, name), 0.03, name)
			}
		}
		want = logs
	}
}
