//lazo:norace
package optim_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

func shapeOf(dtype dtypes.DType, dims ...int) shapes.Shape { return shapes.Make(dtype, dims...) }

// A test step uses the averages and changes nothing. Without In it uses the parameters.
func TestAverage_inATestStep(t *testing.T) {
	r := plugintest.CPU(t)
	const decay, rate = 0.75, 0.125
	average := optim.Average{Decay: decay}
	state := newState(t, r, optim.New(rate, average))
	model := func(b *managed.Builder) *graph.Node {
		w := b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
		return graph.Mul(w, graph.ReduceAllMean(b.Field("x")))
	}
	step := trainStep(t, func(b *managed.Builder) { b.Loss("loss", graph.Square(model(b))) })
	test := managed.TestStep(func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() { b.Metric("averaged", model(b)) })
		b.Metric("plain", model(b))
	})
	defer func() { require.NoError(t, test.Close()) }()
	batch := batchOf(t, []float32{1, 1}, 2)
	_, _, err := test.Step(t.Context(), state, batch)
	require.ErrorContains(t, err, "there are no averaged parameters")
	require.ErrorContains(t, err, "put an optim.Average into the optimizer's chain if it has none, and make a training step first")
	w, sum, weight := 1.0, 0.0, 0.0
	for range 20 {
		train(t, step, state, []data.Batch{batch})
		w *= 1 - 2*rate
		sum, weight = decay*sum+(1-decay)*w, decay*weight+1-decay
		before := bits(t, state)
		_, logs, err := test.Step(t.Context(), state, batch)
		require.NoError(t, err)
		require.Equal(t, before, bits(t, state))
		averaged, err := logs.Float("averaged")
		require.NoError(t, err)
		require.InDelta(t, sum/weight, averaged, 1e-6)
		plain, err := logs.Float("plain")
		require.NoError(t, err)
		require.InDelta(t, w, plain, 1e-6)
	}
}

// Before the first update, also within the first accumulation, there are no averages, and the parameters are used.
func TestAverage_beforeTheFirstUpdate(t *testing.T) {
	average := optim.Average{Decay: 0.9}
	state := newState(t, plugintest.CPU(t), optim.New(0.1, optim.Accumulate(2), average))
	batches := slopes(t, 2, 1)
	train(t, trainStep(t, bowl), state, batches[:1])
	test := managed.TestStep(func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() { b.Metric("averaged", bowlLoss(b)) })
		b.Metric("plain", bowlLoss(b))
	})
	defer func() { require.NoError(t, test.Close()) }()
	_, logs, err := test.Step(t.Context(), state, batches[0])
	require.NoError(t, err)
	averaged, err := logs.Float("averaged")
	require.NoError(t, err)
	plain, err := logs.Float("plain")
	require.NoError(t, err)
	require.Equal(t, plain, averaged)
}

// The averages are found from any scope: those of the optimizer there, of the nearest enclosing scope, or of the only
// one.
// In corrects the bias by its own Decay, so that of the optimizer is expected.
func TestAverage_inWithAnotherDecay(t *testing.T) {
	state := run(t, plugintest.CPU(t), optim.New(0.05, optim.Average{Decay: 0.9}), slopes(t, 3, 1))
	for _, decay := range []float64{0.99, 0} {
		step := averageTest(t, optim.Average{Decay: decay})
		_, _, err := step.Step(t.Context(), state, slopes(t, 1, 1)[0])
		require.ErrorContains(t, err, fmt.Sprintf("Average.In has Decay %g, and the averages in /optimizers/average have 0.9: expected the value of the optimizer", decay))
	}
}

func TestAverage_fromAnyScope(t *testing.T) {
	r := plugintest.CPU(t)
	const rate, decay = 0.125, 0.5
	average := optim.Average{Decay: decay}
	model := func(b *managed.Builder) *graph.Node {
		loss := b.Scope().In("a").In("b").VariableWithValue("w", float32(1)).NodeValue(b.Graph())
		return graph.Mul(loss, graph.ReduceAllMean(b.Field("x")))
	}
	loss := func(b *managed.Builder) { b.Loss("loss", graph.Square(model(b))) }
	batch := batchOf(t, []float32{1, 1}, 2)
	in := func(scope string) managed.Build {
		return func(b *managed.Builder) {
			average.In(b.Scope().Store().Scope(scope), b.Graph(), func() { b.Metric("averaged", model(b)) })
		}
	}
	averaged := func(state *managed.State, scope string) (float64, error) {
		test := managed.TestStep(in(scope))
		defer func() { require.NoError(t, test.Close()) }()
		_, logs, err := test.Step(t.Context(), state, batch)
		if err != nil {
			return 0, err
		}
		return logs.Float("averaged")
	}
	// With the state's optimizer, w is 0.75, 0.5625, …. The averages after one step are w itself.
	state := newState(t, r, optim.New(rate, average))
	train(t, trainStep(t, loss), state, []data.Batch{batch})
	for _, scope := range []string{"/", "/a", "/a/b", "/elsewhere"} {
		got, err := averaged(state, scope)
		require.NoError(t, err, scope)
		require.InDelta(t, 0.75, got, 1e-6, scope)
	}
	// With a step's own optimizer in its own scope.
	state = newState(t, r, optim.New(rate))
	by := func(name string) *managed.Stepper {
		step := managed.TrainStep(loss, managed.WithStepOptimizer(name, optim.New(rate, average)))
		t.Cleanup(func() { require.NoError(t, step.Close()) })
		return step
	}
	train(t, by("a"), state, []data.Batch{batch})
	for _, scope := range []string{"/", "/a", "/a/b", "/c"} {
		got, err := averaged(state, scope)
		require.NoError(t, err, scope)
		require.InDelta(t, 0.75, got, 1e-6, scope)
	}
	train(t, by("c"), state, []data.Batch{batch})
	require.Equal(t, 1.0, number(t, state, "/a/global_step"), "each counts its own steps")
	for scope, want := range map[string]float64{"/a": 0.75, "/a/b": 0.75, "/c": 0.5625, "/c/d": 0.5625} {
		got, err := averaged(state, scope)
		require.NoError(t, err, scope)
		require.InDelta(t, want, got, 1e-6, scope)
	}
	_, err := averaged(state, "/")
	require.ErrorContains(t, err, "2 optimizers keep averages, none of them in the scope / or around it: [/a/optimizers/average/updates /c/optimizers/average/updates]: give In the scope of one")
}

// If the training step's optimizer has no Average, the error says so.
func TestAverage_ofAnOptimizerWithoutOne(t *testing.T) {
	state := newState(t, plugintest.CPU(t), optim.New(0.125, optim.Adam{}))
	w := func(b *managed.Builder) *graph.Node {
		return b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
	}
	batch := batchOf(t, []float32{1, 1}, 2)
	of := func(b *managed.Builder) {
		optim.Average{Decay: 0.75}.In(b.Scope(), b.Graph(), func() { b.Loss("loss", graph.Square(w(b))) })
	}
	teacher, test := trainStep(t, of), managed.TestStep(of)
	defer func() { require.NoError(t, test.Close()) }()
	for _, step := range []*managed.Stepper{teacher, test} {
		_, _, err := step.Step(t.Context(), state, batch)
		require.ErrorContains(t, err, "put an optim.Average into the optimizer's chain if it has none")
	}
	_, _, err := trainStep(t, func(b *managed.Builder) { b.Loss("loss", graph.Square(w(b))) }).Step(t.Context(), state, batch)
	require.NoError(t, err)
	for _, step := range []*managed.Stepper{teacher, test} {
		_, _, err = step.Step(t.Context(), state, batch)
		require.ErrorContains(t, err, "there are no averaged parameters in /optimizers: the optimizer has no Average: put an optim.Average into its chain")
		require.NotContains(t, err.Error(), "compile")
	}
}

// A training step can use the averages from before it, once another one has created them. Until then the error says
// how.
func TestR37_averagesInATrainingStep(t *testing.T) {
	const decay, rate = 0.75, 0.125
	average := optim.Average{Decay: decay}
	state := newState(t, plugintest.CPU(t), optim.New(rate, average))
	w := func(b *managed.Builder) *graph.Node {
		return b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
	}
	plain := trainStep(t, func(b *managed.Builder) { b.Loss("loss", graph.Square(w(b))) })
	teacher := trainStep(t, func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() { b.Metric("averaged", w(b)) })
		b.Loss("loss", graph.Square(w(b)))
	})
	batch := batchOf(t, []float32{1, 1}, 2)
	_, _, err := teacher.Step(t.Context(), state, batch)
	require.ErrorContains(t, err, "there are no averaged parameters")
	require.ErrorContains(t, err, "the first compiled training step creates the averages, and this is one: compile one without Average.In before it (managed.Stepper.Prepare), with the same optimizer")

	require.NoError(t, plain.Prepare(t.Context(), state, batch))
	value, sum, weight := 1.0, 0.0, 0.0
	for i := range 5 {
		_, logs, err := teacher.Step(t.Context(), state, batch)
		require.NoError(t, err)
		averaged, err := logs.Float("averaged")
		require.NoError(t, err)
		want := value // before the first update there is no average
		if i > 0 {
			want = sum / weight
		}
		require.InDelta(t, want, averaged, 1e-6, i)
		value *= 1 - 2*rate
		sum, weight = decay*sum+(1-decay)*value, decay*weight+1-decay
	}
}
