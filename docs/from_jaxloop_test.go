package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// The colab from end to end, with the digits for MNIST.
func TestFromJaxloop_colab(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var out bytes.Buffer

	cnn := func(scope *model.Scope, x *graph.Node) *graph.Node {
		for i, channels := range []int{32, 64} {
			x = nn.Conv{Channels: channels, Window: []int{3}, Kernel: nn.Initial("he_normal")}.Apply(scope.In("conv_%d", i), x)
			x = graph.MeanPool(nn.Relu(x)).Window(2).Done()
		}
		x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
		x = nn.Relu(nn.Dense{Units: 256, Kernel: nn.Initial("he_normal")}.Apply(scope.In("hidden"), x))
		return nn.Dense{Units: 10}.Apply(scope.In("logits"), x)
	}

	training, test := must.M2(data.Digits()) // or files.MNIST(folder)

	trainData := training.Batches(32, data.Shuffle(0)) // a run begins it at its position
	evalData := test.Batches(32)                       // an evaluation begins it again

	report := func(b *managed.Builder) {
		logits := cnn(b.Scope(), b.Field("x"))
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
		b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
	}
	trainStep, evalStep := managed.TrainStep(report), managed.TestStep(report)

	runtime := must.M1(xla.Open(ctx, "cpu", xla.ClientOption("cpu_device_count", int64(2))))
	defer runtime.Close()
	parallel := must.M1(strategies.DataParallel(runtime, strategies.Parallel{}))
	sgd := optim.New(0.005, optim.Momentum{Decay: 0.9})
	state := must.M1(managed.New(parallel, managed.WithOptimizer(sgd), managed.WithSeed(0)))
	defer state.Close()

	keep := checkpoint.Options{Keep: []checkpoint.Retention{{Last: 3}}}
	saving := checkpoint.Resume(filepath.Join(dir, "checkpoints"), checkpoint.Every(loop.Steps(50)), keep) // from the newest, if there is one

	const inner = loop.Steps(10) // the length of an inner loop
	summary := loop.Watch(loop.Every(inner), func(_ context.Context, r loop.Report) error {
		loss, err := r.History.Since(r.Elapsed.Steps - int64(inner)).Mean("loss") // over the inner loop
		if err != nil {
			return err
		}
		accuracy, err := r.Logs.Float("accuracy_eval")
		fmt.Fprintf(&out, "%d steps: loss %.2f, accuracy %.2f\n", r.Elapsed.Steps, loss, accuracy)
		return err
	})

	fit := loop.New(
		loop.On(loop.EachStep, trainStep),
		loop.Evaluate("eval", evalStep, evalData, loop.Until(loop.Steps(100))).On(loop.Every(inner)),
	)
	result := must.M1(fit.Run(ctx, state, trainData, loop.Until(loop.Steps(100)), saving, summary,
		callbacks.JSONL(filepath.Join(dir, "steps.jsonl"), loop.EachStep)))
	accuracy := must.M1(result.History.Last("accuracy_eval"))

	require.EqualValues(t, 100, result.Elapsed.Steps)
	require.Greater(t, accuracy, 0.5)
	require.Equal(t, 10, bytes.Count(out.Bytes(), []byte("\n")), out.String())
	folder := must.M1(checkpoint.Open(filepath.Join(dir, "checkpoints"), checkpoint.Options{ReadOnly: true}))
	defer folder.Close()
	list, err := folder.List(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	lines, err := os.ReadFile(filepath.Join(dir, "steps.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 100, bytes.Count(lines, []byte("\n")))

	again, err := fit.Run(ctx, state, trainData, loop.Until(loop.Steps(100)), saving) // all is done already
	require.NoError(t, err)
	require.EqualValues(t, 100, again.Elapsed.Steps)
	require.Equal(t, result.History.Len(), again.History.Len())
}

func TestFromJaxloop_stepOfOnesOwn(t *testing.T) {
	ctx := t.Context()
	training, _ := digits()
	state, report := fresh(t), classifier

	trainStep := managed.TrainStep(report)
	var slowest time.Duration
	timed := loop.StepFunc[*managed.State, data.Batch](func(ctx context.Context, s *managed.State, b data.Batch) (*managed.State, loop.Logs, error) {
		begin := time.Now() // begin
		s, logs, err := trainStep.Step(ctx, s, b)
		slowest = max(slowest, time.Since(begin)) // end
		return s, logs, err
	})
	brighter := loop.Data[data.Batch](data.Map(training.Batches(32).All(), data.OnField("x", func(a data.Array) (data.Array, error) {
		pixels := append([]float32{}, a.Flat.([]float32)...) // batches in order are views of the set: change a copy
		for i := range pixels {
			pixels[i] = min(1, pixels[i]*1.1)
		}
		return data.Array{Flat: pixels, Dims: a.Dims}, nil
	})))
	result := must.M1(loop.New(loop.On(loop.EachStep, timed)).Run(ctx, state, brighter))

	require.EqualValues(t, 8, result.Elapsed.Steps)
	require.Positive(t, slowest)

	must.M(trainStep.Prepare(ctx, state, must.M1(managed.ZeroBatch(data.X(nil, 32, 8, 8, 1), data.Y([]int32(nil), 32)))))
	fmt.Println(state.Parameters(), "parameters")
	costs := must.M1(trainStep.Costs())
	fmt.Println(costs[0].FLOPs, "floating-point operations a step")

	require.Equal(t, 650, state.Parameters())
	require.Positive(t, costs[0].FLOPs)
}

func TestFromJaxloop_stopsEarly(t *testing.T) {
	ctx, report := t.Context(), classifier
	training, test := digits()
	trainData, evalData := training.Batches(32), test.Batches(64)
	state, inspected := fresh(t), 0

	const inner = loop.Steps(8)
	late := loop.After(loop.Steps(9)) // EvalSpec's should_eval_fn; loop.When takes any function of what has elapsed
	fit := loop.New(
		loop.On(loop.EachStep, managed.TrainStep(report)),
		loop.Evaluate("eval", managed.TestStep(report), evalData).On(loop.Every(2*inner).And(late)),
	)
	result := must.M1(fit.Run(ctx, state, trainData, loop.Until(loop.Steps(10_000)),
		callbacks.StopEarly("loss_eval", callbacks.Evaluations(2), callbacks.Monitor{MinDelta: 0.05}),
		callbacks.NonFinite(),
		loop.Watch(loop.Every(loop.Steps(3)), func(context.Context, loop.Report) error { // an action of a step, not of a loop
			inspected++
			return nil
		})))
	var stop *callbacks.EarlyStopError
	if errors.As(result.Stop, &stop) {
		fmt.Printf("the best %s was %.2f, at step %d\n", stop.Entry, stop.Best, stop.At.Steps)
	}

	require.Equal(t, loop.Stopped, result.Reason)
	require.NotNil(t, stop)
	require.Less(t, stop.Best, 1.5)
	require.Less(t, result.Elapsed.Steps, int64(1000))
	require.EqualValues(t, result.Elapsed.Steps/3, inspected)
}

func TestFromJaxloop_continuousEvaluation(t *testing.T) {
	ctx, report, dir := t.Context(), classifier, t.TempDir()
	training, test := digits()
	batches := training.Batches(32)
	evalData := test.Batches(64)
	state := fresh(t)
	for _, steps := range []loop.Steps{10, 20, 30} { // each run saves at its end
		fit := loop.New(loop.On(loop.EachStep, managed.TrainStep(report)))
		_, err := fit.Run(ctx, state, batches, loop.Until(steps), checkpoint.Resume(dir, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 3}}}))
		require.NoError(t, err)
	}
	state = fresh(t)

	eval, history := loop.Evaluate("eval", managed.TestStep(report), evalData), &loop.History{}
	for at, err := range (checkpoint.Follow{Dir: dir}).Into(ctx, state) { // ends when the training has marked its end there
		must.M(err)
		_, logs := must.M2(eval.Run(ctx, state))
		history.Commit(at, logs, 0)
	}
	at, losses := must.M2(history.Series("loss_eval"))

	require.Len(t, losses, 3)
	require.Less(t, losses[2], losses[0])
	require.EqualValues(t, 30, at[2].Steps)
}
