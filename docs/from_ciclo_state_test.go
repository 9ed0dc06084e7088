//lazo:norace
package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
)

func TestFromCiclo_managed(t *testing.T) {
	ctx := t.Context()
	training, test := digits()
	model := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return nn.Dense{Units: 10}.Apply(scope, graph.Reshape(x, -1, 64))
	}
	runtime, adamw := cpu(), optim.New(1e-2, optim.Adam{}, optim.WeightDecay{Rate: 1e-4})

	strategy := must.M1(strategies.Parse("jit", runtime)) // "data_parallel", "eager"
	state := must.M1(managed.New(strategy, managed.WithOptimizer(adamw)))
	defer state.Close()

	trainStep := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), model(b.Scope(), b.Field("x"))))
	})
	for pass, err := range loop.Over(training.Batches(32, data.Shuffle(0)), loop.Until(loop.Epochs(10))) {
		must.M(err)
		_, logs := must.M2(trainStep.Step(ctx, state, pass.Batch))
		loss := must.M1(logs.Float("loss")) // waits for the step: ask where you need it
		fmt.Printf("loss: %.3f\n", loss)
	}

	testStep := managed.TestStep(func(b *managed.Builder) {
		b.Metric("loss", losses.CrossEntropy(b.Field("y"), model(b.Scope(), b.Field("x"))))
	})
	tested := must.M1(loop.New(loop.On(loop.EachStep, testStep)).Run(ctx, state, test.Batches(32)))
	loss := must.M1(tested.History.Mean("loss"))

	require.Less(t, loss, 0.6*math.Log(10), "a model that knows nothing has ln 10")
	before, err := state.Value("/kernel")
	require.NoError(t, err)

	kept := must.M1(state.Snapshot(ctx)) // what "old = state" is in Ciclo
	must.M1(loop.New(loop.On(loop.EachStep, trainStep)).Run(ctx, state, training.Batches(32)))
	moved := must.M1(state.Value("/kernel"))
	must.M(kept.Restore(ctx))

	require.False(t, before.Equal(moved))
	after, err := state.Value("/kernel")
	require.NoError(t, err)
	require.True(t, before.Equal(after))
}

func TestFromCiclo_createFlaxState(t *testing.T) {
	ctx := t.Context()
	training, test := digits()
	runtime, adamw := cpu(), optim.New(1e-2, optim.Adam{}, optim.WeightDecay{Rate: 1e-4})
	batches := training.Batches(32, data.Shuffle(0))

	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 10}},
		flaxlike.WithOptimizer(adamw),
		flaxlike.WithLoss("sparse_categorical_crossentropy"),
		flaxlike.WithMetrics("accuracy"),
		flaxlike.WithStrategy(strategies.Jit(runtime))))
	defer model.Close()

	testData := test.Batches(64)
	fit := train.Of[*flaxlike.Model]() // its TrainStep and ResetStep
	fit.Epoch = loop.Steps(training.Len() / 32)
	fit.Tests = []loop.Evaluation[*flaxlike.Model, data.Batch]{train.TestOf[*flaxlike.Model](testData)}
	result := must.M1(fit.Run(ctx, model, batches, loop.Until(loop.Steps(80)), callbacks.ProgressBar(os.Stderr)))

	tested, err := result.History.Last("accuracy_test")
	require.NoError(t, err)
	require.Greater(t, tested, 0.7)
	columns, err := result.History.Collect("loss_test", "accuracy_test")
	require.NoError(t, err)
	require.Len(t, columns[0], 10)

	for batch, err := range training.Batches(32).All() {
		must.M(err)
		_, logs := must.M2(model.TrainStep(ctx, batch))
		loss := must.M1(logs.Float("losses.loss"))
		fmt.Printf("loss: %.3f\n", loss)
	}

	var predictions []flaxlike.Prediction
	for p, err := range model.PredictBatches(ctx, test.Batches(32)) {
		must.M(err)
		predictions = append(predictions, p)
	}

	require.Len(t, predictions, 2)
	require.Equal(t, []int{32, 10}, must.M1(predictions[0].Output()).Dims)

	history := must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: 2, Validation: test}))
	figures := must.M1(model.Evaluate(ctx, test))

	require.Equal(t, 2, history.Len())
	require.Greater(t, figures["accuracy"], 0.7)
}

func TestFromCiclo_ownState(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var out bytes.Buffer
	points := func(yield func(float64, error) bool) {
		for i := 0; yield(float64(i%16)/8-1, nil); i++ {
		}
	}

	type params struct{ slope, offset float64 }
	rate := 0.1 // what Ciclo's first sketch called a static: the function closes over it
	step := func(_ context.Context, p params, x float64) (params, loop.Logs, error) {
		miss := p.slope*x + p.offset - (3*x + 1)
		var logs loop.Logs
		logs.Loss("loss", miss*miss)
		return params{p.slope - rate*2*miss*x, p.offset - rate*2*miss}, logs, nil
	}

	type turn = loop.Turn[params, float64]
	result := must.M1(loop.New(
		loop.On(loop.EachStep, loop.StepFunc(step)),
		loop.OnTurn(loop.Never.Then(loop.Steps(100), loop.Every(loop.Steps(50))), func(_ context.Context, t *turn) error {
			t.Logs.Metric("slope", t.State.slope)
			return nil
		}),
	).Run(ctx, params{}, loop.Data[float64](points),
		loop.Until(loop.Steps(400)),
		loop.WatchEntry("slope", func(_ context.Context, r loop.Report) error {
			slope, err := r.Logs.Float("slope")
			fmt.Fprintf(&out, "step %d: %.2f\n", r.Elapsed.Steps, slope)
			return err
		}),
		callbacks.Profile(dir, loop.Steps(100), loop.Steps(10))))

	require.InDelta(t, 3, result.State.slope, 0.01)
	require.InDelta(t, 1, result.State.offset, 0.01)
	require.Contains(t, out.String(), "step 200: ")
	require.FileExists(t, filepath.Join(dir, "cpu.pprof"))
}
