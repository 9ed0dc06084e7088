package docs_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	gomlxcheckpoint "github.com/gomlx/gomlx/ml/model/checkpoint"
	gomlx "github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/gomlxdata"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// mlp is a GoMLX model function: images [batch, 8, 8, 1] to logits [batch, 10].
func mlp(scope *model.Scope, image *graph.Node) *graph.Node {
	x := graph.Reshape(image, image.Shape().Dimensions[0], -1)
	x = activation.Relu(layers.Dense(scope.In("hidden"), x, true, model.GetParamOr(scope, "units", 16)))
	return layers.Dense(scope.In("logits"), x, true, 10)
}

// inMemory is a GoMLX dataset of the digits, in batches of 32: images, and labels [batch, 1] as GoMLX's losses want
// them.
func inMemory(t *testing.T, on *xla.Runtime, set *data.Set) *dataset.InMemoryDataset {
	t.Helper()
	source := gomlxdata.To("digits", data.Map(set.Batches(set.Len()).All(), labelColumn), []string{"image"}, []string{"label"})
	all, err := dataset.InMemory(on, source, true)
	require.NoError(t, err)
	t.Cleanup(all.FinalizeAll)
	return all.BatchSize(32, true)
}

func labelColumn(b data.Batch) (data.Batch, error) {
	x, y := must.M1(b.Field("x")), must.M1(b.Field("y"))
	b.Fields = []data.Field{data.Named("image", x.Flat, x.Dims...), data.Named("label", y.Flat, y.Dims[0], 1)}
	return b, nil
}

func TestFromGoMLX_onLazosBackend(t *testing.T) {
	ctx := t.Context()
	training, test := digits()
	runtime := must.M1(xla.Open(ctx, "cpu"))
	t.Cleanup(func() { require.NoError(t, runtime.Close()) })
	dataset, testDataset := inMemory(t, runtime, training).Shuffle().Infinite(true), inMemory(t, runtime, test)

	var backend compute.Backend = runtime // of xla.Open(ctx, "cpu")
	trainer := gomlx.NewTrainer(backend, model.NewStore(), mlp, loss.SparseCategoricalCrossEntropyLogits,
		optim.New(1e-2, optim.Clip{GlobalNorm: 1}, optim.Adam{}), nil,
		[]metric.Interface{metric.NewSparseCategoricalAccuracy("accuracy", "acc")})
	must.M1(gomlx.NewLoop(trainer).RunSteps(dataset, 100))
	figures := must.M1(trainer.Eval(testDataset))
	fmt.Println("accuracy:", figures[1].Value()) // after the loss

	require.Greater(t, figures[len(figures)-1].Value(), float32(0.7))
	trainer.Store().Finalize()
}

func TestFromGoMLX_modelAsItIs(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	training, test := digits()
	dataset, testDataset, runtime := inMemory(t, cpu(), training).Shuffle(), inMemory(t, cpu(), test), cpu()

	step := func(b *managed.Builder) {
		labels, logits := []*graph.Node{b.Field("label")}, []*graph.Node{mlp(b.Scope(), b.Field("image"))}
		b.Loss("loss", loss.SparseCategoricalCrossEntropyLogits(labels, logits))
		b.Metric("accuracy", metric.SparseCategoricalAccuracyGraph(b.Scope(), labels, logits))
		b.Track("mean_accuracy", metrics.Accuracy(), nil, graph.Squeeze(labels[0], -1), logits[0]) // since the last reset
	}

	batches := gomlxdata.From(dataset, []string{"image"}, []string{"label"})
	testBatches := gomlxdata.From(testDataset, []string{"image"}, []string{"label"})

	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(1e-2).Done()))))
	defer state.Close()
	fit := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	result := must.M1(fit.Run(ctx, state, loop.Data[data.Batch](data.Repeat(batches, math.MaxInt)),
		loop.Until(loop.Steps(100)),
		callbacks.ProgressBar(os.Stderr),
		checkpoint.Resume(filepath.Join(dir, "digits"), checkpoint.Every(loop.Time(time.Minute)))))
	evaluated := must.M1(loop.New(loop.On(loop.EachStep, managed.TestStep(step))).Run(ctx, state, loop.Data[data.Batch](testBatches)))
	accuracy := must.M1(evaluated.History.Last("mean_accuracy"))
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
	batches := training.Batches(32, data.Shuffle(0))
	var every, often, seldom []int64
	note := func(list *[]int64) func(context.Context, loop.Report) error {
		return func(_ context.Context, r loop.Report) error { *list = append(*list, r.Elapsed.Steps); return nil }
	}

	evaluate := loop.Evaluate("test", managed.TestStep(step), test.Batches(64))
	doubling := loop.When("after 10, 20, 40, … steps", func(_, now loop.Elapsed) bool {
		return now.Steps%10 == 0 && bits.OnesCount64(uint64(now.Steps/10)) == 1
	})
	result := must.M1(loop.New(
		loop.On(loop.EachStep, managed.TrainStep(step)),
		evaluate.On(doubling), // ExponentialCallback
	).Run(ctx, state, batches,
		loop.Until(loop.Steps(100)),
		loop.Watch(loop.Every(loop.Steps(25)), note(&every)),                   // EveryNSteps
		loop.Watch(loop.Every(loop.Steps(100/10)), note(&often)),               // NTimesDuringLoop
		loop.Watch(loop.Every(loop.Time(time.Hour)).AndAtEnd(), note(&seldom)), // PeriodicCallback with callOnEnd
		callbacks.NonFinite(), callbacks.KeepBest("loss_test")))
	at, losses := must.M2(result.History.Series("loss_test"))

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
	ctx, strategy := t.Context(), jit()
	training, _ := digits()

	type config struct {
		Units int     `json:"units"`
		Rate  float64 `json:"rate"`
	}
	c := config{Units: 32, Rate: 1e-2} // of flags, or of a file
	step := func(b *managed.Builder) {
		b.Scope().SetParam("units", c.Units) // what the model reads by GetParamOr
		logits := mlp(b.Scope(), b.Field("x"))
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	}
	state := must.M1(managed.New(strategy, managed.WithOptimizer(optim.New(c.Rate, optim.Adam{}))))
	defer state.Close()
	must.M1(loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(ctx, state, training.Batches(32)))

	require.Equal(t, 64*32+32+32*10+10, state.Parameters())

	must.M(state.SetLearningRate(1e-3)) // nothing is compiled again
	rate := must.M1(state.LearningRate())

	require.InDelta(t, 1e-3, rate, 1e-9)
}

func TestFromGoMLX_devices(t *testing.T) {
	ctx, step := t.Context(), classifier
	training, _ := digits()
	batches := training.Batches(32, data.Shuffle(0))
	adam := func() *optim.Optimizer { return optim.New(1e-2, optim.Adam{}) }

	runtime := must.M1(xla.Open(ctx, "cpu", xla.ClientOption("cpu_device_count", int64(4))))
	defer runtime.Close()
	parallel := must.M1(strategies.DataParallel(runtime, strategies.Parallel{}))
	state := must.M1(managed.New(parallel, managed.WithOptimizer(adam()), managed.WithSeed(0)))
	defer state.Close()
	result := must.M1(loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(ctx, state, batches, loop.Until(loop.Steps(50))))

	one, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(step))).Run(ctx, fresh(t), batches, loop.Until(loop.Steps(50)))
	require.NoError(t, err)
	require.Equal(t, one.State.Summary().Rows, result.State.Summary().Rows)
	for _, row := range one.State.Summary().Rows {
		if name := path.Join(row.Layer, row.Name); row.Kind == managed.Parameter {
			want, got := must.M1(one.State.Value(name)), must.M1(result.State.Value(name))
			require.InDeltaSlice(t, tensors.MustCopyFlatData[float32](want), tensors.MustCopyFlatData[float32](got), 1e-5, name)
		}
	}
}

func TestFromGoMLX_importedCheckpoint(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	training, test := digits()
	theirs := model.NewStore()
	trainer := gomlx.NewTrainer(cpu(), theirs, mlp, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(1e-2).Done(), nil, nil)
	_, err := gomlx.NewLoop(trainer).RunSteps(inMemory(t, cpu(), training).Infinite(true), 40)
	require.NoError(t, err)
	saving, err := gomlxcheckpoint.Build(theirs).Dir(dir).Done()
	require.NoError(t, err)
	require.NoError(t, saving.Save())
	figures, err := trainer.Eval(inMemory(t, cpu(), test))
	require.NoError(t, err)
	step := func(b *managed.Builder) {
		logits := mlp(b.Scope(), b.Field("x"))
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	}
	state := fresh(t)

	imported := must.M1(checkpoint.ImportGoMLX(dir, 0))
	must.M(state.Transfer(ctx, imported, func(name string) string {
		if _, found := imported.Tensor(name); !found || name == "/#rngState" {
			return "" // unchanged here
		}
		return name
	}))
	tested := must.M1(loop.New(loop.On(loop.EachStep, managed.TestStep(step))).Run(ctx, state, test.Batches(32)))
	loss := must.M1(tested.History.Mean("loss"))

	require.InDelta(t, figures[0].Value(), loss, 1e-5)
	weights, err := state.Value("/logits/dense/weights")
	require.NoError(t, err)
	require.True(t, weights.Equal(theirs.GetVariable("/logits/dense/weights").MustValue()))
	theirs.Finalize()

	// What Adam keeps has come along.
	trainStep := managed.TrainStep(step)
	require.NoError(t, trainStep.Prepare(ctx, state, must.M1(managed.ZeroBatch(data.X(nil, 32, 8, 8, 1), data.Y([]int32(nil), 32)))))
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
		for batch, err := range training.Batches(32).All() {
			if n++; n > 3 {
				yield(data.Batch{}, lost)
				return
			}
			if !yield(batch, err) {
				return
			}
		}
	}

	result, err := loop.New(loop.On(loop.EachStep, managed.TrainStep(classify))).Run(ctx, state, loop.Data[data.Batch](batches))
	if errors.Is(err, lost) {
		fmt.Println(result.Elapsed.Steps, "steps are in the state:", err)
	}

	require.ErrorIs(t, err, lost)
	require.EqualValues(t, 3, result.Elapsed.Steps)

	wrong := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), b.Field("image"))) // no such field
	})
	_, err = loop.New(loop.On(loop.EachStep, wrong)).Run(ctx, state, training.Batches(32))
	fmt.Println(err)

	require.ErrorContains(t, err, `"image"`)
	require.ErrorContains(t, err, "from_gomlx_test.go:")
	_, err = loop.New(loop.On(loop.EachStep, managed.TrainStep(classify))).Run(ctx, state, training.Batches(32))
	require.NoError(t, err, "the state is as it was")
}
