package docs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	gomlxcontext "github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/context/checkpoints"
	"github.com/gomlx/gomlx/pkg/ml/datasets"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	gomlx "github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/losses"
	gomlxmetrics "github.com/gomlx/gomlx/pkg/ml/train/metrics"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/gomlxdata"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// mlp is a GoMLX model function: images [batch, 8, 8, 1] to logits [batch, 10].
func mlp(ctx *gomlxcontext.Context, _ any, inputs []*graph.Node) []*graph.Node {
	x := graph.Reshape(inputs[0], inputs[0].Shape().Dimensions[0], -1)
	x = activations.Relu(layers.Dense(ctx.In("hidden"), x, true, gomlxcontext.GetParamOr(ctx, "units", 16)))
	return []*graph.Node{layers.Dense(ctx.In("logits"), x, true, 10)}
}

// inMemory is a GoMLX dataset of the digits, in batches of 32: images, and labels [batch, 1] as GoMLX's losses want them.
func inMemory(t *testing.T, on *xla.Runtime, set *data.Set) *datasets.InMemoryDataset {
	t.Helper()
	source := gomlxdata.To("digits", data.Map(set.Batches(set.Len()), labelColumn), []string{"image"}, []string{"label"})
	all, err := datasets.InMemory(on, source, true)
	require.NoError(t, err)
	t.Cleanup(all.FinalizeAll)
	return all.BatchSize(32, true)
}

func labelColumn(b data.Batch) (data.Batch, error) {
	x, y := must(b.Get("x")), must(b.Get("y"))
	b.Fields = []data.Field{data.Named("image", x.Flat, x.Dims...), data.Named("label", y.Flat, y.Dims[0], 1)}
	return b, nil
}

func TestFromGoMLX_onLazosBackend(t *testing.T) {
	ctx := t.Context()
	training, test := digits()
	runtime := must(xla.Open(ctx, "cpu"))
	t.Cleanup(func() { require.NoError(t, runtime.Close()) })
	dataset, testDataset, model := inMemory(t, runtime, training).Shuffle().Infinite(true), inMemory(t, runtime, test), mlp

	var backend backends.Backend = runtime // of xla.Open(ctx, "cpu")
	trainer := gomlx.NewTrainer(backend, gomlxcontext.New(), model, losses.SparseCategoricalCrossEntropyLogits,
		optim.New(1e-2, optim.ClipByGlobalNorm(1), optim.Adam{}), nil,
		[]gomlxmetrics.Interface{gomlxmetrics.NewSparseCategoricalAccuracy("accuracy", "acc")})
	_, err := gomlx.NewLoop(trainer).RunSteps(dataset, 100)
	check(err)
	figures, err := trainer.Eval(testDataset)
	check(err)
	fmt.Println("accuracy:", figures[2].Value()) // behind two losses

	require.Greater(t, figures[len(figures)-1].Value(), float32(0.7))
	trainer.Context().Finalize()
}

func TestFromGoMLX_modelAsItIs(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	training, test := digits()
	dataset, testDataset, model, runtime := inMemory(t, cpu(), training).Shuffle(), inMemory(t, cpu(), test), mlp, cpu()

	step := func(b *managed.Builder) {
		labels := []*managed.Node{b.Node("label")}
		logits := model(b.Vars(), nil, []*managed.Node{b.Node("image")})
		b.Loss("loss", losses.SparseCategoricalCrossEntropyLogits(labels, logits))
		b.Metric("accuracy", gomlxmetrics.SparseCategoricalAccuracyGraph(b.Vars(), labels, logits))
		b.Track("mean_accuracy", metrics.Accuracy(), nil, graph.Squeeze(labels[0], -1), logits[0]) // since the last reset
	}

	batches := gomlxdata.From(dataset, []string{"image"}, []string{"label"})
	testBatches := gomlxdata.From(testDataset, []string{"image"}, []string{"label"})

	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(optimizers.Adam().LearningRate(1e-2).Done()))
	check(err)
	defer state.Close()
	folder, err := checkpoint.Open(filepath.Join(dir, "digits"), checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(3)}})
	check(err)
	defer folder.Close()
	fit := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	result, err := fit.Run(ctx, state, data.RepeatForever(batches),
		loop.Until(loop.Steps(100)),
		loop.ProgressBar(os.Stderr),
		checkpoint.Save(folder, loop.Every(loop.Time(time.Minute))))
	check(err)
	evaluated, err := loop.New(loop.On(loop.EachStep, managed.TestStep(step))).Run(ctx, state, testBatches)
	check(err)
	accuracy, err := evaluated.History.Last("mean_accuracy")
	check(err)
	fmt.Println("accuracy:", accuracy)

	require.EqualValues(t, 3200, result.Elapsed.Samples)
	require.Greater(t, accuracy, 0.7)
	require.Equal(t, []string{"/hidden/dense/weights", "/hidden/dense/biases", "/logits/dense/weights", "/logits/dense/biases"}, parameters(state))
}

// parameters are the names of what is trained.
func parameters(state *managed.State) (names []string) {
	trained := map[string]bool{}
	for _, row := range state.Summary().Rows {
		trained[row.Layer+"/"+row.Name] = row.Kind == managed.Parameter
	}
	for _, name := range state.Names() {
		if trained[name] {
			names = append(names, name)
		}
	}
	return names
}

func TestFromGoMLX_hooks(t *testing.T) {
	ctx := t.Context()
	training, test := digits()
	state, step := fresh(t), classifier
	batches := training.Batches(32, data.Shuffle(0), data.Forever())
	var every, often, seldom []int64
	note := func(list *[]int64) loop.Watcher {
		return func(_ context.Context, r loop.Report) error { *list = append(*list, r.Elapsed.Steps); return nil }
	}

	evaluate := loop.Evaluation[*managed.State, data.Batch]{
		Name: "test",
		Loop: loop.New(loop.On(loop.EachStep, managed.TestStep(step))),
		Data: loop.Fixed(test.Batches(64)),
	}
	result, err := loop.New(
		loop.On(loop.EachStep, managed.TrainStep(step)),
		evaluate.On(loop.Exponential(loop.Steps(10), 2)), // ExponentialCallback
	).Run(ctx, state, batches,
		loop.Until(loop.Steps(100)),
		loop.Watch(loop.Every(loop.Steps(25)), note(&every)),                   // EveryNSteps
		loop.Watch(loop.Times(10, loop.Steps(100)), note(&often)),              // NTimesDuringLoop
		loop.Watch(loop.Every(loop.Time(time.Hour)).AndAtEnd(), note(&seldom)), // PeriodicCallback with callOnEnd
		loop.NonFinite(loop.FailRun), loop.KeepBest("loss_test", loop.Lowest))
	check(err)
	at, losses, err := result.History.Series("loss_test")
	check(err)

	require.Equal(t, []int64{25, 50, 75, 100}, every)
	require.Len(t, often, 10)
	require.Equal(t, []int64{100}, seldom)
	require.Equal(t, []int64{10, 20, 40, 80}, stepsOf(at))
	require.Less(t, losses[3], losses[0])
}

func stepsOf(at []loop.Elapsed) (steps []int64) {
	for _, e := range at {
		steps = append(steps, e.Steps)
	}
	return steps
}

func TestFromGoMLX_hyperparameters(t *testing.T) {
	ctx, model := t.Context(), mlp
	training, _ := digits()
	strategy := jit()

	type config struct {
		Units int     `json:"units"`
		Rate  float64 `json:"rate"`
	}
	c := config{Units: 32, Rate: 1e-2} // of flags, or of a file
	step := func(b *managed.Builder) {
		b.Vars().SetParam("units", c.Units) // what the model reads by GetParamOr
		logits := model(b.Vars(), nil, []*managed.Node{b.Node("x")})[0]
		b.Loss("loss", managed.CrossEntropy(b.Node("y"), logits))
	}
	state, err := managed.New(strategy, managed.WithOptimizer(optim.New(c.Rate, optim.Adam{})))
	check(err)
	defer state.Close()
	_, err = loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(ctx, state, training.Batches(32))
	check(err)

	require.Equal(t, 64*32+32+32*10+10, state.Parameters())

	check(state.SetLearningRate(1e-3)) // nothing is compiled again
	rate, err := state.LearningRate()
	check(err)

	require.InDelta(t, 1e-3, rate, 1e-9)
}

func TestFromGoMLX_devices(t *testing.T) {
	ctx, step := t.Context(), classifier
	training, _ := digits()
	batches := training.Batches(32, data.Shuffle(0), data.Forever())
	adam := func() managed.Optimizer { return optim.New(1e-2, optim.Adam{}) }

	runtime, err := xla.Open(ctx, "cpu", xla.ClientOption("cpu_device_count", int64(4)))
	check(err)
	defer runtime.Close()
	parallel, err := strategies.DataParallel(runtime)
	check(err)
	state, err := managed.New(parallel, managed.WithOptimizer(adam()), managed.WithSeed(0))
	check(err)
	defer state.Close()
	result, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(ctx, state, batches, loop.Until(loop.Steps(50)))
	check(err)

	one, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(ctx, fresh(t), batches, loop.Until(loop.Steps(50)))
	require.NoError(t, err)
	difference, err := managed.CompareValues(ctx, result.State, one.State, 1e-5)
	require.NoError(t, err)
	require.Empty(t, difference, "as on one device")
}

func TestFromGoMLX_importedCheckpoint(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	training, test := digits()
	theirs := gomlxcontext.New()
	trainer := gomlx.NewTrainer(cpu(), theirs, mlp, losses.SparseCategoricalCrossEntropyLogits, optimizers.Adam().LearningRate(1e-2).Done(), nil, nil)
	_, err := gomlx.NewLoop(trainer).RunSteps(inMemory(t, cpu(), training).Infinite(true), 40)
	require.NoError(t, err)
	saving, err := checkpoints.Build(theirs).Dir(dir).Done()
	require.NoError(t, err)
	require.NoError(t, saving.Save())
	figures, err := trainer.Eval(inMemory(t, cpu(), test))
	require.NoError(t, err)
	step := func(b *managed.Builder) {
		logits := mlp(b.Vars(), nil, []*managed.Node{b.Node("x")})[0]
		b.Loss("loss", managed.CrossEntropy(b.Node("y"), logits))
	}
	state := fresh(t)

	imported, err := checkpoint.ImportGoMLX(dir)
	check(err)
	check(state.Transfer(ctx, imported, func(name string) string {
		if _, found := imported.Tensor(name); !found || name == "/#rngState" {
			return "" // stays as it is here
		}
		return name
	}))
	tested, err := loop.New(loop.On(loop.EachStep, managed.TestStep(step))).Run(ctx, state, test.Batches(32))
	check(err)
	loss, err := tested.History.Mean("loss")
	check(err)

	require.InDelta(t, figures[0].Value(), loss, 1e-5)
	weights, err := state.Value("/logits/dense/weights")
	require.NoError(t, err)
	require.True(t, weights.Equal(theirs.GetVariableByScopeAndName("/logits/dense", "weights").MustValue()))
	theirs.Finalize()

	// What Adam keeps has come along.
	trainStep := managed.TrainStep(step)
	require.NoError(t, trainStep.Prepare(ctx, state, must(managed.ZeroBatch(data.X(nil, 32, 8, 8, 1), data.Y([]int32(nil), 32)))))
	for _, name := range []string{"/AdamOptimizer/logits/dense/weights_1st_moment", "/AdamOptimizer/hidden/dense/biases_2nd_moment", "/global_step"} {
		value, err := state.Value(name)
		require.NoError(t, err)
		tensor, found := imported.Tensor(name)
		require.True(t, found, name)
		require.NoError(t, value.ConstBytes(func(held []byte) { require.Equal(t, tensor.Data, held, name) }))
	}
}

func TestFromGoMLX_errors(t *testing.T) {
	ctx := t.Context()
	training, _ := digits()
	state, classify := fresh(t), classifier
	lost := errors.New("the file server is gone")
	batches := func(yield func(data.Batch, error) bool) {
		n := 0
		for batch, err := range training.Batches(32) {
			if n++; n > 3 {
				yield(data.Batch{}, lost)
				return
			}
			if !yield(batch, err) {
				return
			}
		}
	}

	result, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(classify))).Run(ctx, state, batches)
	if errors.Is(err, lost) {
		fmt.Println(result.Elapsed.Steps, "steps are in the state:", err)
	}

	require.ErrorIs(t, err, lost)
	require.EqualValues(t, 3, result.Elapsed.Steps)

	wrong := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", managed.CrossEntropy(b.Node("y"), b.Node("image"))) // no such field
	})
	_, err = loop.New(loop.On(loop.EachStep, wrong)).Run(ctx, state, training.Batches(32))
	fmt.Println(err)

	require.ErrorContains(t, err, `"image"`)
	require.ErrorContains(t, err, "from_gomlx_test.go:")
	_, err = loop.New(loop.On(loop.EachStep, managed.TrainStep(classify))).Run(ctx, state, training.Batches(32))
	require.NoError(t, err, "the state is as it was")
}
