package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	gomlx "github.com/gomlx/gomlx/ml/model/checkpoint"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
)

// twoLayers is a model of both: GoMLX's trainer and managed give it variables and inputs.
func twoLayers(scope *model.Scope, x *graph.Node) *graph.Node {
	return layers.Dense(scope.In("out"), graph.Tanh(layers.Dense(scope.In("h"), x, true, 8)), true, 1)
}

// A model trained by GoMLX's own trainer continues in a managed state: the state is bit-identical, with Adam's moments,
// and the evaluation and the losses of later steps are the same.
func TestF39_aModelOfGoMLXGoesOn(t *testing.T) {
	r := plugintest.CPU(t)
	for name, form := range map[string]gomlx.BinFormat{"gzip": gomlx.BinGZIP, "raw": gomlx.BinUncompressed} {
		t.Run(name, func(t *testing.T) {
			store := model.NewStore()
			trainer := train.NewTrainer(r, store, twoLayers, loss.MeanSquaredError, adam(), nil, nil)
			batch := first(t, line(t, 16).Batches(16))
			tensorOf := func(field int) []*tensors.Tensor {
				values, ok := batch.Fields[field].Array.Flat.([]float32)
				require.True(t, ok)
				return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, 16, 1)}
			}
			lossOf := func(do func(train.Batch) ([]*tensors.Tensor, error)) float64 {
				metrics, err := do(train.Batch{Inputs: tensorOf(0), Labels: tensorOf(1)})
				require.NoError(t, err)
				return float64(tensors.ToScalar[float32](metrics[0]))
			}
			for range 30 {
				lossOf(trainer.TrainStep)
			}
			dir := t.TempDir()
			handler, err := gomlx.Build(store).Dir(dir).WithCompression(form).Done()
			require.NoError(t, err)
			require.NoError(t, handler.Save())

			c, err := checkpoint.ImportGoMLX(dir, 0)
			require.NoError(t, err)
			require.EqualValues(t, 30, c.Step)
			state := newState(t, r, managed.WithOptimizer(adam()))
			require.NoError(t, state.Transfer(t.Context(), c, func(variable string) string { return variable }))
			model := func(b *managed.Builder) {
				b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), twoLayers(b.Scope(), b.Field("x")))))
			}
			step := func(s *managed.Stepper, batch data.Batch) float64 {
				_, logs, err := s.Step(t.Context(), state, batch)
				require.NoError(t, err)
				loss, err := logs.Float("loss")
				require.NoError(t, err)
				return loss
			}
			want := lossOf(trainer.EvalStep)
			got := step(stepper(t, managed.TestStep(model)), batch)
			require.InEpsilon(t, want, got, 1e-6)
			for name, b := range bits(t, state) {
				tensor, ok := c.Tensor(name)
				require.True(t, ok, name)
				require.Equal(t, tensor.Data, b, name)
			}
			going := stepper(t, managed.TrainStep(model))
			worst := 0.0
			for range 10 {
				a, b := lossOf(trainer.TrainStep), step(going, batch)
				require.InEpsilon(t, a, b, 1e-5)
				worst = max(worst, b/a-1, a/b-1)
			}
			t.Logf("F39: GoMLX's trainer, 30 steps of Adam, %s: evaluation %g here, %g there; the next 10 losses within %.1g", name, got, want, worst)
		})
	}
}
