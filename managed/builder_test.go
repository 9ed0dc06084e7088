package managed_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// A run whose training step reads averages, and in which parameters join, is resumed bit-identical without preparing
// other steps; so are the averages of an evaluation.
func TestAverage_ofParametersThatJoin_resumed(t *testing.T) {
	r := plugintest.CPU(t)
	average := optim.Average{Decay: 0.5}
	network := func(b *managed.Builder) *graph.Node {
		x := graph.Tanh(nn.Dense{Units: 2}.Apply(b.Scope().At("a"), b.Field("x")))
		return nn.Dense{Units: 1}.Apply(b.Scope().At("w"), x)
	}
	error2 := func(y *graph.Node, target float64) *graph.Node {
		return graph.ReduceAllMean(graph.Square(graph.AddScalar(y, -target)))
	}
	warm := managed.TrainStep(func(b *managed.Builder) { b.Loss("loss", error2(network(b), 1)) },
		managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, "/w/") }))
	full := managed.TrainStep(func(b *managed.Builder) {
		y := network(b)
		b.Loss("loss", error2(y, 1))
		average.In(b.Scope(), b.Graph(), func() {
			b.Inference(func() {
				b.Loss("consistency", graph.ReduceAllMean(graph.Square(graph.Sub(graph.StopGradient(network(b)), y))))
			})
		})
	})
	test := managed.TestStep(func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() { b.Metric("averaged", error2(network(b), 1)) })
	})
	endless := loop.From(func(int64) iter.Seq2[data.Batch, error] {
		return func(yield func(data.Batch, error) bool) {
			for yield(pair, nil) {
			}
		}
	})
	run := func(dir string, until int64) (map[string][]byte, float64) {
		for _, s := range []*managed.Stepper{warm, full, test} {
			require.NoError(t, s.Close())
		}
		state := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
		late := loop.After(loop.Steps(5))
		_, err := loop.New(loop.On(late.Not(), warm), loop.On(late, full)).Run(t.Context(), state, endless, loop.Until(loop.Steps(until)), checkpoint.Resume(dir))
		require.NoError(t, err)
		return bits(t, state), float(t, one(t, stepper(t, test), state, pair), "averaged")
	}
	whole, averaged := run(t.TempDir(), 12)
	for _, stop := range []int64{3, 5, 7} {
		dir := t.TempDir()
		run(dir, stop)
		again, now := run(dir, 12)
		require.Equal(t, whole, again, "stopped after %d", stop)
		require.Equal(t, averaged, now)
	}

	// The first step on a restored state is an evaluation.
	dir := t.TempDir()
	_, want := run(dir, 7)
	state := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
	folder, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	newest, err := folder.Newest(t.Context())
	require.NoError(t, err)
	require.NoError(t, state.Restore(t.Context(), newest))
	require.NoError(t, test.Close())
	require.Equal(t, want, float(t, one(t, stepper(t, test), state, pair), "averaged"))

	// A step of another part of the network comes first, and then the evaluation.
	part := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", error2(nn.Dense{Units: 2}.Apply(b.Scope().At("a"), b.Field("x")), 1))
	}))
	state = newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
	one(t, part, state, pair)
	one(t, full, state, pair)
	one(t, full, state, pair)
	again := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{}, average)))
	require.NoError(t, again.Restore(t.Context(), reread(t, state)))
	for _, s := range []*managed.State{state, again} {
		one(t, part, s, pair)
	}
	require.Equal(t, float(t, one(t, test, state, pair), "averaged"), float(t, one(t, test, again, pair), "averaged"))
}

// A part of a training step that is built for inference has no dropout, and normalizes by its averages, as in a test
// step: a researcher's teacher dropped a half of its units at random.
func TestInference(t *testing.T) {
	teacher := func(b *managed.Builder) *graph.Node {
		scope := b.Scope().In("teacher")
		x := nn.Dropout{Rate: 0.5}.Apply(scope, nn.BatchNorm{}.Apply(scope, b.Field("x")))
		require.False(t, b.Training())
		return graph.ReduceAllSum(x)
	}
	build := func(b *managed.Builder) {
		training := b.Training()
		var of *graph.Node
		b.Inference(func() { of = teacher(b) })
		require.Equal(t, training, b.Training())
		b.Metric("teacher", of)
		w := b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
		b.Loss("loss", graph.Square(graph.Sub(w, graph.StopGradient(of))))
	}
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(0.01)))
	batch := first(t, line(t, 8).Batches(8))
	var seen []float64
	for range 2 {
		for _, step := range []*managed.Stepper{managed.TrainStep(build), managed.TestStep(build)} {
			_, logs, err := stepper(t, step).Step(t.Context(), state, batch)
			require.NoError(t, err)
			of, err := logs.Float("teacher")
			require.NoError(t, err)
			seen = append(seen, of)
		}
	}
	require.NotZero(t, seen[0])
	for _, of := range seen {
		require.Equal(t, seen[0], of)
	}
}

// Weight decay, and a rule that moves parameters without a gradient, leave a teacher alone. Variables that the student
// shares with it are trained.
func TestInference_isNotTrained(t *testing.T) {
	build := func(b *managed.Builder) {
		dense := func() *graph.Node { return nn.Dense{Units: 1}.Apply(b.Scope().At("shared"), b.Field("x")) }
		var of *graph.Node
		b.Inference(func() {
			of = graph.StopGradient(graph.Add(nn.Dense{Units: 1}.Apply(b.Scope().In("teacher"), b.Field("x")), dense()))
		})
		student := nn.Dense{Units: 1}.Apply(b.Scope().In("student"), dense())
		b.Loss("loss", losses.SquaredError(of, student))
	}
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(0.01, optim.Adam{}, optim.WeightDecay{Rate: 0.1})))
	step, batch := stepper(t, managed.TrainStep(build)), first(t, line(t, 8).Batches(8))
	require.NoError(t, step.Prepare(t.Context(), state, batch))
	names := []string{"/teacher/kernel", "/shared/kernel", "/student/kernel"}
	before := make([][]float32, len(names))
	for i, name := range names {
		before[i] = floats(t, state, name)
	}
	for range 3 {
		_, _, err := step.Step(t.Context(), state, batch)
		require.NoError(t, err)
	}
	require.Equal(t, before[0], floats(t, state, names[0]))
	require.NotEqual(t, before[1], floats(t, state, names[1]))
	require.NotEqual(t, before[2], floats(t, state, names[2]))
}

// F32: batches of 1 to 33 examples over 1, 2, 4 and 8 devices. With padding, loss and count are those of one device.
// Dropping leaves out the remainder. Otherwise it is an error, after which the state stays usable.
//
//lazo:norace
func TestF32_leftovers(t *testing.T) {
	set := line(t, 33)
	build := func(b *managed.Builder) {
		y := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
		b.Loss("loss", graph.ReduceSum(graph.Square(graph.Sub(y, b.Field("y"))), -1))
		count := graph.Scalar(b.Graph(), dtypes.Int32, float64(b.Field("x").Shape().Dimensions[0]))
		if mask := b.Mask(); mask != nil {
			count = graph.ReduceAllSum(graph.ConvertDType(mask, dtypes.Int32))
		}
		b.Metric("count", count)
	}
	whole := first(t, set.Batches(33))
	some := func(n int) data.Batch {
		b := data.Batch{Size: n}
		for _, f := range whole.Fields {
			b.Fields = append(b.Fields, data.Field{Name: f.Name, Array: f.Array.Slice(0, n)})
		}
		return b
	}
	test := func(s strategies.Strategy) (func(n int) (loss, count float64, err error), func()) {
		state, err := managed.New(s)
		require.NoError(t, err)
		step := managed.TestStep(build)
		return func(n int) (loss, count float64, err error) {
				_, logs, err := step.Step(t.Context(), state, some(n))
				if err != nil {
					return 0, 0, err
				}
				return float(t, logs, "loss"), float(t, logs, "count"), nil
			}, func() {
				require.NoError(t, step.Close())
				require.NoError(t, state.Close())
			}
	}
	r := plugintest.Devices(t, 8)
	want := map[int]float64{}
	one, done := test(strategies.Jit(r))
	for _, n := range leftoverSizes {
		loss, count, err := one(n)
		require.NoError(t, err)
		require.Equal(t, float64(n), count)
		want[n] = loss
	}
	done()
	worst, sizes := 0.0, 0
	for _, on := range []int{1, 2, 4, 8} {
		parallel := func(pad bool) (func(n int) (float64, float64, error), func()) {
			s, err := strategies.DataParallel(r, strategies.Parallel{Devices: on, Pad: pad})
			require.NoError(t, err)
			return test(s)
		}
		padded, donePadding := parallel(true)
		refused, doneRefusing := parallel(false)
		for _, n := range leftoverSizes {
			sizes++
			loss, count, err := padded(n)
			require.NoError(t, err)
			require.Equal(t, float64(n), count, "none lost, none doubled")
			far := math.Abs(loss-want[n]) / want[n]
			worst = max(worst, far)
			require.LessOrEqual(t, far, 1e-6, "%d examples on %d devices", n, on)

			if n%on != 0 {
				_, _, err = refused(n)
				require.ErrorIs(t, err, strategies.ErrLeftover)
				require.ErrorContains(t, err, fmt.Sprintf("a batch of %d examples over %d devices", n, on))
			}
		}
		donePadding()
		doneRefusing()
	}
	t.Logf("F32: %d pairs of sizes and devices: padded losses at most %.1e from those of one device, 0 examples lost or doubled", sizes, worst)
}

// F17: each strategy call of a training fails once. The error is the strategy's own, the state is that of before or of
// after the step, and the training continues from there to the values of an undisturbed one.
func TestF17_failCallK(t *testing.T) {
	four := plugintest.Devices(t, 4)
	failCallK(t, strategies.Jit(plugintest.CPU(t)), regression)
	failCallK(t, onFour(t, four, strategies.Parallel{}), regression)
	failCallK(t, onFour(t, four, strategies.Parallel{Shard: strategies.FullyShard(4, 4)}), hiddenFour)
}

// What becomes of the 10 examples of a batch on 4 devices.
func TestLeftover(t *testing.T) {
	perExample := func(b *managed.Builder) {
		y := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
		b.Loss("loss", graph.Square(graph.Sub(y, b.Field("y"))))
		b.Metric("x", graph.Squeeze(b.Field("x")))
		// Results of the padding may have any value.
		b.Metric("inverse", graph.Reciprocal(graph.Squeeze(b.Field("x"), -1)))
	}
	lossesOf := func(s strategies.Strategy, examples int, build managed.Build) (all []float64, last loop.Logs, err error) {
		state, err := managed.New(s, managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		step := stepper(t, managed.TrainStep(build))
		for b, err := range line(t, 64).Batches(10, data.Kept).All() {
			require.NoError(t, err)
			if b.Size >= examples {
				for i, f := range b.Fields {
					b.Fields[i].Array = f.Array.Slice(0, examples)
				}
				b.Size = examples
			}
			_, logs, err := step.Step(t.Context(), state, b)
			if err != nil {
				return all, last, err
			}
			loss, err := logs.Float("loss")
			require.NoError(t, err)
			all, last = append(all, loss), logs
		}
		return all, last, nil
	}
	four := func(pad bool) strategies.Strategy {
		s, err := strategies.DataParallel(plugintest.Devices(t, 4), strategies.Parallel{Pad: pad})
		require.NoError(t, err)
		return s
	}
	near := func(want, got []float64) {
		require.Len(t, got, len(want))
		for i := range want {
			require.InDelta(t, want[i], got[i], 1e-6)
		}
	}
	one := strategies.Jit(plugintest.CPU(t))

	_, _, err := lossesOf(four(false), 10, perExample)
	require.ErrorIs(t, err, strategies.ErrLeftover)
	require.EqualError(t, err, "managed: train step: data_parallel: a batch of 10 examples over 4 devices: the examples cannot be divided evenly over the devices: use a batch size that is a multiple of 4, or Parallel.Pad")

	all, want, err := lossesOf(one, 10, perExample)
	require.NoError(t, err)
	padded, got, err := lossesOf(four(true), 10, perExample)
	require.NoError(t, err)
	near(all, padded)
	for _, name := range []string{"x", "inverse"} {
		w, err := want.Float(name)
		require.NoError(t, err)
		g, err := got.Float(name)
		require.NoError(t, err)
		require.InDelta(t, w, g, 1e-6*math.Abs(w), name)
	}
	t.Log(fmt.Sprint("losses of 10 examples: on one device ", all, ", padded on four ", padded))

	scalar := func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1))))
	}
	even, _, err := lossesOf(one, 8, scalar)
	require.NoError(t, err)
	padded, _, err = lossesOf(four(true), 8, scalar) // all can be divided: nothing is padded
	require.NoError(t, err)
	near(even, padded)
	_, _, err = lossesOf(four(true), 10, scalar)
	require.ErrorContains(t, err, `"loss" is (Float32), but the batch is padded: report a value for each of its 12 examples, whose mean leaves the padding out, or use the builder's Mask`)
	masking := func(b *managed.Builder) {
		square := graph.Square(graph.Sub(layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1), b.Field("y")))
		if b.Mask() == nil {
			b.Loss("loss", square)
			return
		}
		mask := graph.ConvertDType(b.Mask(), square.DType())
		b.Loss("loss", graph.Div(graph.Dot(graph.Squeeze(square, -1), mask).Product(), graph.ReduceAllSum(mask)))
	}
	padded, _, err = lossesOf(four(true), 10, masking)
	require.NoError(t, err)
	near(all, padded)
}

func TestMaskedCrossEntropy(t *testing.T) {
	r := plugintest.CPU(t)
	step := managed.TestStep(func(b *managed.Builder) {
		labels, logits := b.Field("labels"), b.Field("logits")
		each := losses.CrossEntropy(labels, logits)
		b.Output("each", each)
		b.Metric("masked", losses.MaskedMean(each, b.Field("mask")))
		b.Metric("truth", losses.MaskedMean(each, graph.GreaterOrEqual(labels, graph.ZerosLike(labels))))
		b.Metric("doubled", losses.MaskedMean(each, graph.MulScalar(b.Field("mask"), 2)))
		b.Metric("none", losses.MaskedMean(each, b.Field("none")))
		first := func(n *graph.Node) *graph.Node { return graph.Slice(n, graph.AxisRange(), graph.AxisRange(0, 1)) }
		b.Metric("mean", graph.ReduceAllMean(losses.CrossEntropy(first(labels), first(logits)))) // [2, 1] and [2, 1, 2]
		b.Metric("accuracy", graph.ReduceAllMean(losses.Accuracy(first(labels), first(logits))))
	})
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	_, logs, err := step.Step(t.Context(), newState(t, r), sequences())
	require.NoError(t, err)
	want := []float64{math.Log1p(math.Exp(-1)), math.Log1p(math.Exp(2)), 0, math.Ln2, 0, 0}
	each, err := managed.Array(logs, "each")
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, each.Dims)
	for _, i := range []int{0, 1, 3} {
		require.InDelta(t, want[i], each.Flat.([]float32)[i], 1e-6)
	}
	mean := (want[0] + want[1] + want[3]) / 3
	for name, want := range map[string]float64{"masked": mean, "truth": mean, "doubled": mean, "none": 0, "mean": (want[0] + want[3]) / 2, "accuracy": 1} {
		require.InDelta(t, want, float(t, logs, name), 1e-6, name)
	}
}

func TestMaskedMean_refusesAnotherShape(t *testing.T) {
	step := managed.TestStep(func(b *managed.Builder) {
		b.Metric("x", losses.MaskedMean(losses.CrossEntropy(b.Field("labels"), b.Field("logits")), b.Field("logits")))
	})
	_, _, err := step.Step(t.Context(), newState(t, plugintest.CPU(t)), sequences())
	require.ErrorContains(t, err, "MaskedMean: expected floating-point values and a mask of their dimensions, got values (Float32)[2, 3] and mask (Float32)[2, 3, 2]")
}

// R31: a loss that is one number and has nothing of the batch, as a penalty on weights, is right in a padded batch too.
func TestR31_penaltiesOfAPaddedBatch(t *testing.T) {
	batch := first(t, line(t, 6).Batches(6))
	padded, err := data.Pad(batch, 8)
	require.NoError(t, err)
	build := func(mean bool) managed.Build {
		return func(b *managed.Builder) {
			b.Scope().SetParam(regularizer.ParamL2, 0.25)
			y := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
			weights := b.Scope().Store().GetVariable("/dense/dense/weights").NodeValue(b.Graph())
			managed.AddLoss("penalty", graph.ReduceAllMax(graph.Abs(weights)))
			b.Loss("loss", graph.Square(graph.Sub(b.Field("y"), y)))
			if mean {
				managed.AddLoss("activity", graph.ReduceAllMean(graph.Square(y)))
			}
		}
	}
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	test := stepper(t, managed.TestStep(build(false), managed.RunningAverages()))
	for _, name := range []string{"loss", "penalty", "aux_loss", "avg_penalty"} {
		_, logs, err := test.Step(t.Context(), state, batch)
		require.NoError(t, err)
		_, ofPadded, err := test.Step(t.Context(), state, padded)
		require.NoError(t, err)
		require.NotZero(t, float(t, logs, name))
		require.InDelta(t, float(t, logs, name), float(t, ofPadded, name), 1e-6, name)
	}
	_, _, err = stepper(t, managed.TestStep(build(true))).Step(t.Context(), state, padded)
	require.ErrorContains(t, err, `"activity" is (Float32), but the batch is padded`)
}

// B36: a model is a function, so one of another form does not compile. Other mistakes are errors of the first step, and
// the state stays new.
func TestB36_aModelInTheWrongForm(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	for name, row := range map[string]struct {
		build managed.Build
		want  string
	}{
		"none":              {nil, "train step: the function that builds the step is nil"},
		"no loss":           {func(b *managed.Builder) { b.Metric("m", b.Field("x")) }, "loss"},
		"a missing field":   {func(b *managed.Builder) { b.Loss("loss", b.Field("images")) }, `"images"`},
		"a node of nothing": {func(b *managed.Builder) { b.Loss("loss", nil) }, "loss"},
	} {
		step := stepper(t, managed.TrainStep(row.build))
		_, _, err := step.Step(t.Context(), state, firstBatch(t))
		require.Error(t, err, name)
		require.ErrorContains(t, err, row.want, name)
		require.Empty(t, state.Names(), name)
		t.Logf("B36: %s: %v", name, err)
	}
}

// B61: random numbers that are asked for in named scopes come from the one random state, as those without a name do:
// the names change nothing, the order does.
func TestB61_namedRandomNumbers(t *testing.T) {
	r := plugintest.CPU(t)
	draws := func(names ...string) (all []float32) {
		state := newState(t, r, managed.WithSeed(3))
		step := stepper(t, managed.TestStep(func(b *managed.Builder) {
			for _, name := range names {
				scope := b.Scope()
				if name != "" {
					scope = scope.In("%s", name)
				}
				b.Output("noise"+name, scope.RandomUniform(b.Graph(), b.Field("x").Shape()))
			}
		}))
		_, logs, err := step.Step(t.Context(), state, firstBatch(t))
		require.NoError(t, err)
		for _, name := range names {
			all = append(all, tensors.MustCopyFlatData[float32](array(t, logs, "outputs.noise"+name))...)
		}
		return all
	}
	one := draws("params", "dropout")
	require.Equal(t, one, draws("a", "b"))
	require.NotEqual(t, one[:16], one[16:], "they are drawn one after the other")
}

// The functions of train and test steps ask which it is, and so do layers: a test drops nothing and leaves the
// statistics of normalisations alone.
func TestBuilder_training(t *testing.T) {
	on(t, func(t *testing.T, state *managed.State) {
		build := func(b *managed.Builder) {
			x := graph.OnesLike(b.Field("x"))
			dropped := layers.Dropout(b.Scope().In("drop"), x, graph.Scalar(b.Graph(), x.DType(), 0.5))
			b.Metric("kept", graph.ReduceAllMax(dropped)) // 2 in training, where half of them are 0
			b.Metric("zeros", graph.IsZero(dropped))
			normal := norm.BatchNorm(b.Scope().In("norm"), b.Field("x"), -1).Done()
			training := 0.0
			if b.Training() {
				training = 1
			}
			b.Metric("training", graph.Scalar(b.Graph(), dtypes.Float32, training))
			b.Loss("loss", graph.Add(graph.Square(graph.Sub(layers.Dense(b.Scope().In("dense"), normal, true, 1), b.Field("y"))), graph.MulScalar(dropped, 0)))
		}
		train, test := stepper(t, managed.TrainStep(build)), stepper(t, managed.TestStep(build))
		for range 2 {
			_, logs, err := train.Step(t.Context(), state, firstBatch(t))
			require.NoError(t, err)
			require.Equal(t, []float64{1, 2}, []float64{float(t, logs, "training"), float(t, logs, "kept")})
			require.Positive(t, float(t, logs, "zeros"))
			before := bits(t, state)
			_, logs, err = test.Step(t.Context(), state, firstBatch(t))
			require.NoError(t, err)
			require.Equal(t, []float64{0, 1, 0}, []float64{float(t, logs, "training"), float(t, logs, "kept"), float(t, logs, "zeros")})
			require.Equal(t, before, bits(t, state))
		}
	}, managed.WithOptimizer(sgd()))
}

// XLA's matrix product has memory overwritten by a signal that meets one of its threads: 9 of 9 trainings under Go's
// CPU profiler died of a damaged heap before signals were kept from these threads (see pjrt.WithoutSignals).
func TestProfilerDoesNotDamageTheHeap(t *testing.T) {
	const n, steps = 1280, 150
	x, y := make([]float32, n*784), make([]int32, n)
	for i := range x {
		x[i] = float32(i%1000) / 1000
	}
	set, err := data.New(data.X(x, n, 784), data.Y(y, n))
	require.NoError(t, err)
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	step := managed.TrainStep(func(b *managed.Builder) {
		h := b.Field("x")
		for i := range 3 {
			h = activation.Relu(layers.Dense(b.Scope().In("dense_%d", i), h, true, 512))
		}
		b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), h)))
	})
	defer func() { require.NoError(t, step.Close()) }()
	dir := t.TempDir()
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(128), loop.Until(loop.Steps(steps)),
		callbacks.Profile(dir, loop.Steps(0), loop.Steps(steps)))
	require.NoError(t, err)
	loss, err := result.History.Last("loss")
	require.NoError(t, err)
	require.Less(t, loss, 0.1)
	f, err := os.Open(filepath.Join(dir, "time.pprof"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	times, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Contains(t, string(times), "managed.(*Stepper).StepBlock", "R39: the time of the steps is in the profile, though XLA's threads are not")
	t.Logf("%d steps under the CPU profiler, 0 process deaths", steps)
}

// The state counts its steps and examples, and steps see the counts, in blocks too.
func TestSteps(t *testing.T) {
	build := func(b *managed.Builder) {
		y := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), y)))
		b.Metric("steps", b.Steps())
		b.Metric("samples", b.Samples())
		b.Metric("samples again", b.Samples())
	}
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := stepper(t, managed.TrainStep(build))
	for pass := range 2 {
		for i, l := range each(t, step, state, 16, pass == 1) {
			require.Equal(t, float64(4*pass+i), float(t, l, "steps"))
			require.Equal(t, float64(16*(4*pass+i)), float(t, l, "samples"))
			require.Equal(t, float64(16*(4*pass+i)), float(t, l, "samples again"))
		}
	}
	l := each(t, stepper(t, managed.TestStep(build)), state, 64, false)[0]
	require.Equal(t, 8.0, float(t, l, "steps"))
	require.Equal(t, 128.0, float(t, l, "samples"))
}

// R05: metrics of a padded batch cover the examples that count, also together with a scalar. A scalar computed from the
// batch includes the padding and is refused, as elsewhere.
func TestR05_trackedScalarsOfAPaddedBatch(t *testing.T) {
	batch := data.Batch{Size: 6, Fields: []data.Field{data.X([]float32{1, 2, 3, 4, 5, 6}, 6), data.Y([]float32{1, 1, 1, 1, 1, 1}, 6)}}
	padded, err := data.Pad(batch, 8)
	require.NoError(t, err)
	one := func(b *managed.Builder) *graph.Node { return graph.Scalar(b.Graph(), b.Field("x").DType(), 1) }
	for name, row := range map[string]struct {
		build managed.Build
		want  float64 // 0: it is refused
	}{
		"vector": {func(b *managed.Builder) { b.Track("it", metrics.Mean(), nil, b.Field("x")) }, 3.5},
		"vector, weighted": {func(b *managed.Builder) {
			b.Track("it", metrics.Mean(), graph.OnesLike(b.Field("x")), b.Field("x"))
		}, 3.5},
		"constant": {func(b *managed.Builder) { b.Track("it", metrics.Sum(), nil, one(b)) }, 1},
		"vector beside a constant": {func(b *managed.Builder) {
			b.Track("it", firstInput{metrics.Mean()}, nil, b.Field("x"), one(b))
		}, 3.5},
		"vector beside a scalar of the batch": {func(b *managed.Builder) {
			b.Track("it", firstInput{metrics.Mean()}, nil, b.Field("x"), graph.ReduceAllMean(b.Field("y")))
		}, 0},
		"mean of a scalar of the batch": {func(b *managed.Builder) { b.Track("it", metrics.Mean(), nil, graph.ReduceAllMean(b.Field("x"))) }, 0},
		"sum of a scalar of the batch":  {func(b *managed.Builder) { b.Track("it", metrics.Sum(), nil, graph.ReduceAllSum(b.Field("x"))) }, 0},
		"scalar by the mask": {func(b *managed.Builder) {
			x := b.Field("x")
			if mask := b.Mask(); mask != nil {
				x = graph.Where(mask, x, graph.ZerosLike(x))
			}
			b.Track("it", metrics.Sum(), nil, graph.ReduceAllSum(x))
		}, 21},
	} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, plugintest.CPU(t))
			step := stepper(t, managed.TestStep(row.build))
			_, logs, err := step.Step(t.Context(), state, padded)
			if row.want == 0 {
				require.ErrorIs(t, err, managed.ErrPadded)
				require.ErrorContains(t, err, `"it" is (Float32)`)
				_, _, err = step.Step(t.Context(), state, batch)
				require.NoError(t, err, "without padding it is right")
				return
			}
			require.NoError(t, err)
			require.InDelta(t, row.want, float(t, logs, "it"), 1e-6)
		})
	}
}
