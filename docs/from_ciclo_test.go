package docs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics/plots"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

// classifier is the linear one of Ciclo's first page.
func classifier(b *managed.Builder) {
	logits := nn.Dense{Units: 10}.Apply(b.Scope(), graph.Reshape(b.Field("x"), -1, 64))
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
}

// fresh is a state of its own for a test.
func fresh(t *testing.T) *managed.State {
	t.Helper()
	state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(1e-2, optim.Adam{})), managed.WithSeed(0)))
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	return state
}

func TestFromCiclo_gettingStarted(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()

	training, _ := must.M2(data.Digits()) // or files.MNIST(folder)
	batches := training.Batches(32, data.Shuffle(0))

	classify := func(b *managed.Builder) {
		x := b.Field("x") // float32 [32, 8, 8, 1], from 0 to 1
		logits := nn.Dense{Units: 10}.Apply(b.Scope(), graph.Reshape(x, x.Shape().Dimensions[0], -1))
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
		b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
	}

	runtime := must.M1(xla.Open(ctx, "cpu"))
	defer runtime.Close()
	adamw := optim.New(1e-3, optim.Adam{}, optim.WeightDecay{Rate: 1e-4})
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(adamw), managed.WithSeed(0)))
	defer state.Close()

	keep := checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}} // two, if nothing is said
	result := must.M1(loop.New(
		loop.On(loop.EachStep, managed.TrainStep(classify)),
	).Run(ctx, state, batches,
		checkpoint.Resume(filepath.Join(dir, "model"), checkpoint.Every(loop.Steps(1000)), keep),
		callbacks.ProgressBar(os.Stderr),
		loop.Until(loop.Steps(5000))))
	fmt.Println(result.Elapsed.Steps, "steps,", result.Reason)

	columns := must.M1(result.History.Collect("steps", "loss", "accuracy"))
	steps, losses, accuracies := columns[0], columns[1], columns[2]
	must.M(plots.History(result.History, "loss", "accuracy").Save(filepath.Join(dir, "history.html")))

	require.Equal(t, loop.UntilReached, result.Reason)
	require.Len(t, steps, 5000)
	require.Equal(t, 1.0, steps[0], "a step is counted when it is finished")
	require.Equal(t, 5000.0, steps[4999])
	require.Less(t, mean(losses[4900:]), 0.5*mean(losses[:100]))
	require.Greater(t, mean(accuracies[4900:]), 0.93)
	folder := must.M1(checkpoint.Open(filepath.Join(dir, "model"), checkpoint.Options{ReadOnly: true}))
	defer folder.Close()
	kept, err := folder.Newest(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5000, kept.Step)
	list, err := folder.List(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	text, err := os.ReadFile(filepath.Join(dir, "history.html"))
	require.NoError(t, err)
	require.Contains(t, string(text), "accuracy")
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func TestFromCiclo_byHand(t *testing.T) {
	ctx, classify := t.Context(), classifier
	training, _ := digits()
	batches := training.Batches(32, data.Shuffle(0))
	state := fresh(t)
	folder := must.M1(checkpoint.Open(t.TempDir(), checkpoint.Options{}))
	defer folder.Close()

	trainStep := managed.TrainStep(classify)
	history, bar := &loop.History{}, must.M1(callbacks.ProgressBar(os.Stderr).Start(loop.Beginning{}))
	var report loop.Report
	for pass, err := range loop.Over(batches, loop.Until(loop.Steps(100))) {
		must.M(err)
		var logs loop.Logs
		state, logs = must.M2(trainStep.Step(ctx, state, pass.Batch))
		if pass.Due(loop.Every(loop.Steps(20))) {
			content := must.M1(state.Content(ctx))
			must.M(folder.Save(ctx, checkpoint.Step(pass.Elapsed.Steps), content))
		}
		history.Commit(pass.Elapsed, logs, pass.Samples())
		report = pass.Report(logs, history)
		must.M(bar.Watch(ctx, report))
	}
	must.M(bar.End(ctx, loop.Ending{Report: report}))

	require.Equal(t, 100, history.Len())
	list, err := folder.List(ctx)
	require.NoError(t, err)
	var steps []checkpoint.Step
	for _, c := range list {
		steps = append(steps, c.Step)
	}
	require.Equal(t, []checkpoint.Step{20, 40, 60, 80, 100}, steps)
	last, err := history.Last("accuracy")
	require.NoError(t, err)
	require.Greater(t, last, 0.7)
}

func TestFromCiclo_goingOn(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	training, _ := digits()
	classify := classifier

	run := func(state *managed.State, until loop.Steps) (loop.Result[*managed.State], error) {
		batches := training.Batches(32, data.Shuffle(0))
		return loop.New(loop.On(loop.EachStep, managed.TrainStep(classify))).Run(ctx, state, batches,
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(10))), loop.Until(until))
	}

	_, err := run(fresh(t), 30)
	require.NoError(t, err)
	result, err := run(fresh(t), 60)
	require.NoError(t, err)
	require.EqualValues(t, 60, result.Elapsed.Steps)
	unbroken, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(classify))).Run(ctx, fresh(t),
		training.Batches(32, data.Shuffle(0)), loop.Until(loop.Steps(60)))
	require.NoError(t, err)
	_, want, err := unbroken.History.Series("loss")
	require.NoError(t, err)
	_, got, err := result.History.Series("loss")
	require.NoError(t, err)
	require.Equal(t, want, got, "bit for bit")
}

func TestFromCiclo_trainLoop(t *testing.T) {
	ctx, classify := t.Context(), classifier
	training, test := digits()
	batches := training.Batches(32, data.Shuffle(0))
	state := fresh(t)
	dir := t.TempDir()

	epoch := loop.Steps(training.Len() / 32)
	fit := train.Loop[*managed.State, data.Batch]{
		Step:  managed.TrainStep(classify),
		Epoch: epoch,
		Tests: []loop.Evaluation[*managed.State, data.Batch]{
			loop.Evaluate("test", managed.TestStep(classify), test.Batches(64)),
		},
		Hooks: []train.Hooks[*managed.State, data.Batch]{{
			EpochEnd: func(_ context.Context, turn *loop.Turn[*managed.State, data.Batch]) error {
				accuracy, err := turn.Logs.Float("accuracy_test")
				fmt.Printf("step %d: %.2f\n", turn.Elapsed.Steps, accuracy)
				return err
			},
		}},
		Tasks: []loop.Task[*managed.State, data.Batch]{
			loop.OnTurn(loop.Every(loop.Steps(20)), func(_ context.Context, turn *loop.Turn[*managed.State, data.Batch]) error {
				rate, err := turn.State.LearningRate()
				turn.Logs.Metric("rate", rate)
				return err
			}),
		},
	}
	result := must.M1(fit.Run(ctx, state, batches,
		loop.Until(loop.Steps(80)),
		callbacks.ProgressBar(os.Stderr),
		checkpoint.Resume(dir, checkpoint.Every(epoch), checkpoint.KeepBest("loss_test")),
		callbacks.StopEarly("loss_test", callbacks.Evaluations(3))))
	best, at := must.M2(result.History.Best("accuracy_test", loop.Highest))

	ends, _, err := result.History.Series("accuracy_test")
	require.NoError(t, err)
	require.Equal(t, []int64{8, 16, 24, 32, 40, 48, 56, 64, 72, 80}, stepsOf(ends))
	of, rates, err := result.History.Series("rate")
	require.NoError(t, err)
	require.Equal(t, []int64{20, 40, 60, 80}, stepsOf(of))
	require.InDelta(t, 1e-2, rates[0], 1e-6)
	require.Greater(t, best, 0.7)
	require.Contains(t, stepsOf(ends), at.Steps)
}

func TestFromCiclo_innerLoops(t *testing.T) {
	ctx, classify := t.Context(), classifier
	training, test := digits()
	batches := training.Batches(32, data.Shuffle(0))
	state := fresh(t)

	testing := loop.Evaluate("test", managed.TestStep(classify), test.Batches(32))
	result := must.M1(loop.New(
		loop.On(loop.EachStep, managed.TrainStep(classify)),
		testing.On(loop.Every(loop.Steps(25)).AndAtStart()), // as Ciclo's every(25), which is due at 0 too
	).Run(ctx, state, batches, loop.Until(loop.Steps(100))))
	at, losses := must.M2(result.History.Series("loss_test"))

	require.Len(t, losses, 5)
	require.EqualValues(t, 0, at[0].Steps, "before the first step")
	require.Less(t, losses[4], 0.8*losses[0])
}
