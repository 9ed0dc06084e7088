package managed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func sgd() *optim.Optimizer {
	return optim.GoMLX(optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(0.1).Done())
}

// line is y = 3x + 1.
func line(t *testing.T, n int) *data.Set {
	t.Helper()
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i%16)/8 - 1
		y[i] = 3*x[i] + 1
	}
	set, err := data.New(data.X(x, n, 1), data.Y(y, n, 1))
	require.NoError(t, err)
	return set
}

func regression(b *managed.Builder) {
	predicted := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted)))
	b.Metric("largest", graph.ReduceAllMax(predicted))
}

func newState(t *testing.T, r *xla.Runtime, options ...managed.Option) *managed.State {
	t.Helper()
	state, err := managed.New(strategies.Jit(r), options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	return state
}

func first(t *testing.T, batches loop.Source[data.Batch]) data.Batch {
	t.Helper()
	for b, err := range batches.From(0) {
		require.NoError(t, err)
		return b
	}
	t.Fatal("no batch")
	return data.Batch{}
}

func floats(t *testing.T, state *managed.State, name string) []float32 {
	t.Helper()
	v, err := state.Value(name)
	require.NoError(t, err)
	flat, err := tensors.CopyFlatData[float32](v)
	require.NoError(t, err)
	return flat
}

func TestTrainStep_learnsALine(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := managed.TrainStep(regression)
	defer func() { require.NoError(t, step.Close()) }()
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, line(t, 64).Batches(16), loop.Until(loop.Steps(200)))
	require.NoError(t, err)
	require.Len(t, step.StableHLO(), 1, "one program for one shape")
	_, losses, err := result.History.Series("loss")
	require.NoError(t, err)
	require.Len(t, losses, 200)
	require.Less(t, losses[199], 1e-5)
	require.Greater(t, losses[0], losses[199])
	require.InDelta(t, 3, floats(t, state, "/dense/dense/weights")[0], 0.01)
	require.InDelta(t, 1, floats(t, state, "/dense/dense/biases")[0], 0.01)
	require.Equal(t, 2, state.Parameters())
	require.EqualValues(t, 200*16, result.Elapsed.Samples)
}

// A two-layer MLP needs five products of matrices a step, as JAX's does: two forward, two for the weights, one for the
// hidden layer. GoMLX's own rules have two and multiply the rest element by element.
func TestTrainStep_dots(t *testing.T) {
	const n = 32
	set, err := data.New(data.X(make([]float32, n*16), n, 16), data.Y(make([]int32, n), n))
	require.NoError(t, err)
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	step := managed.TrainStep(func(b *managed.Builder) {
		h := activation.Relu(layers.Dense(b.Scope().In("hidden"), b.Field("x"), true, 64))
		b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), layers.Dense(b.Scope().In("logits"), h, true, 10))))
	})
	defer func() { require.NoError(t, step.Close()) }()
	_, _, err = step.Step(t.Context(), state, first(t, set.Batches(n)))
	require.NoError(t, err)
	program := step.StableHLO()[0]
	require.Equal(t, 5, strings.Count(program, "stablehlo.dot_general"))
	require.Equal(t, len(state.Names())-2, strings.Count(program, "tf.aliasing_output"),
		"all of the state is written in place but the random state and the learning rate, which the step leaves alone")
}

func TestTrainStep_sameSeedSameBits(t *testing.T) {
	r := plugintest.CPU(t)
	train := func(seed int64) (all []float64, weights []float32) {
		state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())), managed.WithSeed(seed))
		step := managed.TrainStep(func(b *managed.Builder) {
			h := layers.Dense(b.Scope().In("h"), b.Field("x"), true, 8)
			h = layers.Dropout(b.Scope().In("drop"), h, graph.Scalar(b.Graph(), h.DType(), 0.3))
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("out"), h, true, 1))))
		})
		defer func() { require.NoError(t, step.Close()) }()
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, line(t, 64).Batches(16, data.Shuffle(7)), loop.Until(loop.Steps(20)))
		require.NoError(t, err)
		_, all, err = result.History.Series("loss")
		require.NoError(t, err)
		return all, floats(t, state, "/h/dense/weights")
	}
	losses, weights := train(5)
	again, weightsAgain := train(5)
	require.Equal(t, losses, again)
	require.Equal(t, weights, weightsAgain)
	_, other := train(6)
	require.NotEqual(t, weights, other)
}

func TestTestStep_changesNothing(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(sgd()))
	train, test := managed.TrainStep(regression), managed.TestStep(regression)
	defer func() { require.NoError(t, errors.Join(train.Close(), test.Close())) }()
	batch := first(t, line(t, 16).Batches(16))
	_, _, err := train.Step(t.Context(), state, batch)
	require.NoError(t, err)
	before := floats(t, state, "/dense/dense/weights")
	names := state.Names()
	_, a, err := test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	_, b, err := test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	lossA, err := a.Float("loss")
	require.NoError(t, err)
	lossB, err := b.Float("loss")
	require.NoError(t, err)
	require.Equal(t, lossA, lossB)
	require.Equal(t, before, floats(t, state, "/dense/dense/weights"))
	require.Equal(t, names, state.Names(), "the test step finds the variables of the train step")
}

func TestStep_logsOutliveTheStateAndTheQueue(t *testing.T) {
	r := plugintest.CPU(t)
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	step := managed.TrainStep(regression)
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, line(t, 64).Batches(16), loop.Until(loop.Steps(1500)))
	require.NoError(t, err)
	require.NoError(t, errors.Join(step.Close(), state.Close(), state.Close()))
	_, losses, err := result.History.Series("loss")
	require.NoError(t, err)
	require.Len(t, losses, 1500)
	_, _, err = step.Step(t.Context(), state, first(t, line(t, 16).Batches(16)))
	require.ErrorContains(t, err, "used after Close")
}

func TestStep_anotherShapeIsAnotherProgram(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := managed.TrainStep(regression)
	defer func() { require.NoError(t, step.Close()) }()
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, line(t, 40).Batches(16, data.Kept), loop.Until(loop.Epochs(3)))
	require.NoError(t, err)
	require.EqualValues(t, 9, result.Elapsed.Steps)
	require.EqualValues(t, 120, result.Elapsed.Samples)
	require.Len(t, step.StableHLO(), 2)
}

func TestF14_aPanicInTheModelIsAnErrorAndTheStateStays(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(sgd()))
	good := managed.TrainStep(regression)
	defer func() { require.NoError(t, good.Close()) }()
	batch := first(t, line(t, 16).Batches(16))
	_, _, err := good.Step(t.Context(), state, batch)
	require.NoError(t, err)
	before := floats(t, state, "/dense/dense/weights")
	boom := errors.New("boom")
	cases := 0
	for _, row := range []struct {
		name, want string
		train      managed.Build
	}{
		{"an error", "boom", func(*managed.Builder) { panic(boom) }},
		{"a string", "text", func(*managed.Builder) { panic("text") }},
		{"an int", "7", func(*managed.Builder) { panic(7) }},
		{"no such field", `the batch has no field "z"; it has: x, y`, func(b *managed.Builder) { b.Field("z") }},
		{"no such field, of a long name", `… (1000 bytes); it has: x, y`, func(b *managed.Builder) { b.Field(strings.Repeat("z", 1000)) }},
		{"shapes", "", func(b *managed.Builder) { graph.Add(b.Field("x"), graph.Reshape(b.Field("y"), 4, 4)) }},
		{"no loss", "reports no loss", func(*managed.Builder) {}},
		{"integer loss", "expected a floating-point one", func(b *managed.Builder) { b.Loss("loss", graph.Const(b.Graph(), int32(1))) }},
		{"the same name twice", "losses.loss is reported twice", func(b *managed.Builder) { regression(b); b.Loss("loss", b.Field("x")) }},
		{"labels of floats", "labels (Float32)[16, 1] do not fit", func(b *managed.Builder) {
			losses.CrossEntropy(b.Field("y"), graph.Concatenate([]*graph.Node{b.Field("x"), b.Field("x")}, -1))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, _, err := managed.TrainStep(row.train).Step(t.Context(), state, batch)
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, "step_test.go:", "the error names the user's line")
			require.Equal(t, before, floats(t, state, "/dense/dense/weights"))
			_, logs, err := managed.TestStep(regression).Step(t.Context(), state, batch)
			require.NoError(t, err)
			loss, err := logs.Float("loss")
			require.NoError(t, err)
			require.False(t, math.IsNaN(loss))
			cases++
		})
	}
	t.Logf("F14: %d panics, 0 lost states", cases)
}

// A step that asks for more memory than there is must leave the old state as it was (GoMLX's own trainer loses it).
func TestF17_outOfMemoryKeepsTheState(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	good := managed.TrainStep(regression)
	defer func() { require.NoError(t, good.Close()) }()
	batch := first(t, line(t, 16).Batches(16))
	_, _, err := good.Step(t.Context(), state, batch)
	require.NoError(t, err)
	before := floats(t, state, "/dense/dense/weights")
	greedy := managed.TrainStep(func(b *managed.Builder) {
		regression(b)
		row := graph.BroadcastToDims(graph.ReduceAllMax(b.Field("x")), 1<<21)
		// A sort-like product that XLA cannot fuse away: 2^21 × 2^21 floats are 16 TiB.
		square := graph.Dot(graph.Reshape(row, 1<<21, 1), graph.Reshape(row, 1, 1<<21)).Product()
		b.Metric("huge", graph.ReduceAllMax(graph.Dot(square, graph.Reshape(row, 1<<21, 1)).Product()))
	})
	defer func() { require.NoError(t, greedy.Close()) }()
	for range 5 {
		_, _, err = greedy.Step(t.Context(), state, batch)
		require.ErrorIs(t, err, xla.ErrOutOfMemory)
		require.Equal(t, before, floats(t, state, "/dense/dense/weights"))
	}
	_, _, err = good.Step(t.Context(), state, batch)
	require.NoError(t, err)
	t.Logf("F17: 5 failed steps, 0 changed values; %v", fmt.Sprint(err))
}

func TestNew_refuses(t *testing.T) {
	_, err := managed.New(nil)
	require.EqualError(t, err, "managed: new state: no strategy given, such as strategies.Jit(runtime)")
	_, err = managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(nil))
	require.ErrorContains(t, err, "the optimizer is nil, expected one made by optim.New")
	state := newState(t, plugintest.CPU(t))
	_, _, err = managed.TrainStep(regression).Step(t.Context(), state, first(t, line(t, 16).Batches(16)))
	require.ErrorContains(t, err, "the state has no optimizer")
	_, err = state.Value("/nothing")
	require.ErrorContains(t, err, `no variable "/nothing"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = managed.TrainStep(regression).Step(ctx, state, data.Batch{})
	require.ErrorIs(t, err, context.Canceled)
}
