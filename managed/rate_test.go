package managed_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// slope has the loss w² for x = 1, so that a step of plain gradient descent multiplies w by 1 - 2·rate.
func slope(b *managed.Builder) { slopeOf(dtypes.Float32)(b) }

// slopeOf has a loss of a type, which with Adam is that of the learning rate too.
func slopeOf(dtype dtypes.DType) managed.Build {
	return func(b *managed.Builder) {
		w := b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())
		loss := graph.Square(graph.Mul(w, graph.ReduceAllMean(b.Field("x"))))
		b.Loss("loss", graph.ConvertDType(loss, dtype))
	}
}

func ones(t *testing.T, n int) data.Batch {
	t.Helper()
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	set, err := data.New(data.X(x, n))
	require.NoError(t, err)
	return first(t, set.Batches(n))
}

func one(t *testing.T, step *managed.Stepper, state *managed.State, batch data.Batch) loop.Logs {
	t.Helper()
	_, logs, err := step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	return logs
}

func stepper(t *testing.T, step *managed.Stepper) *managed.Stepper {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	return step
}

func TestLearningRate_steersTheNextStep(t *testing.T) {
	state := newState(t, plugintest.Uncached(t), managed.WithOptimizer(sgd()))
	step := stepper(t, managed.TrainStep(slope))
	batch := ones(t, 2)
	one(t, step, state, batch)
	rate, err := state.LearningRate()
	require.NoError(t, err)
	require.Equal(t, float64(float32(0.1)), rate, "the optimizer's own")
	w := 0.8
	require.InDelta(t, w, floats(t, state, "/w")[0], 1e-6)
	compiling := step.CompileTime()
	rates := []float64{0.25, 0, 0.75, 1, 1e-30, 0.125}
	for _, rate := range rates {
		require.NoError(t, state.SetLearningRate(rate))
		got, err := state.LearningRate()
		require.NoError(t, err)
		require.Equal(t, float64(float32(rate)), got)
		one(t, step, state, batch)
		w *= 1 - 2*rate
		require.InDelta(t, w, floats(t, state, "/w")[0], 1e-6, "rate %g", rate)
	}
	require.Len(t, step.StableHLO(), 1)
	require.Equal(t, compiling, step.CompileTime())
	t.Logf("%d rates set, 0 compilations", len(rates))
}

// A rate that is set before the first training step is the same as one that the optimizer was made with.
func TestSetLearningRate_beforeTheFirstStep(t *testing.T) {
	r := plugintest.CPU(t)
	const rate = 0.03125
	for _, row := range []struct {
		name          string
		with, without *optim.Optimizer
	}{
		{name: "gradient descent", with: optim.GoMLX(optimizer.StochasticGradientDescent().WithLearningRate(rate).Done()), without: optim.GoMLX(optimizer.StochasticGradientDescent().Done())},
		{name: "adam", with: optim.GoMLX(optimizer.Adam().LearningRate(rate).Done()), without: optim.GoMLX(optimizer.Adam().Done())},
		{name: "adam with a rate", with: optim.GoMLX(optimizer.Adam().LearningRate(rate).Done()), without: optim.GoMLX(optimizer.Adam().LearningRate(7).Done())},
		{name: "adam in float64", with: optim.GoMLX(optimizer.Adam().DType(dtypes.Float64).LearningRate(rate).Done()), without: optim.GoMLX(optimizer.Adam().DType(dtypes.Float64).Done())},
		{name: "rmsprop", with: optim.GoMLX(optimizer.RMSProp().LearningRate(rate).Done()), without: optim.GoMLX(optimizer.RMSProp().Done())},
	} {
		t.Run(row.name, func(t *testing.T) {
			step, test := stepper(t, managed.TrainStep(slope)), stepper(t, managed.TestStep(slope))
			want := newState(t, r, managed.WithOptimizer(row.with))
			one(t, step, want, ones(t, 2))
			one(t, step, want, ones(t, 2))

			state := newState(t, r, managed.WithOptimizer(row.without))
			_, err := state.LearningRate()
			require.ErrorIs(t, err, managed.ErrNoLearningRate)
			require.EqualError(t, err, "managed: learning rate: no learning rate before the first training step: it can be set, but not read")
			require.NoError(t, state.SetLearningRate(3))
			one(t, test, state, ones(t, 2)) // an evaluation comes first
			require.NoError(t, state.SetLearningRate(rate))
			got, err := state.LearningRate()
			require.NoError(t, err)
			require.Equal(t, rate, got)
			one(t, step, state, ones(t, 2))
			one(t, step, state, ones(t, 2))
			require.Equal(t, bits(t, want), bits(t, state))

			// The training step is compiled again for another shape, which must not set the rate back.
			require.NoError(t, state.SetLearningRate(0.5))
			one(t, step, state, ones(t, 3))
			got, err = state.LearningRate()
			require.NoError(t, err)
			require.Equal(t, 0.5, got)
		})
	}
}

// A training step that failed to compile leaves a variable without a value on the device.
func TestSetLearningRate_afterAStepThatDoesNotCompile(t *testing.T) {
	broken := false
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.GoMLX(&afterwards{optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(0.1).Done(), func() {
		if broken {
			panic("broken")
		}
	}})))
	step := stepper(t, managed.TrainStep(slope))
	broken = true
	_, _, err := step.Step(t.Context(), state, ones(t, 2))
	require.ErrorContains(t, err, "broken")
	broken = false
	require.NoError(t, state.SetLearningRate(0.25))
	one(t, stepper(t, managed.TestStep(slope)), state, ones(t, 2)) // it takes up all variables that there are
	rate, err := state.LearningRate()
	require.NoError(t, err)
	require.Equal(t, 0.25, rate)
	one(t, step, state, ones(t, 2))
	require.InDelta(t, 0.5, floats(t, state, "/w")[0], 1e-6)
}

// afterwards is an optimizer that does something more when its rule is built.
type afterwards struct {
	optimizer.Interface
	do func()
}

func (o *afterwards) UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	o.Interface.(*optimizer.SGDConfig).UpdateGraphWithGradients(scope, gradients, lossDType)
	o.do()
}

// fixed is an optimizer whose learning rate is a constant of the graph.
type fixed struct{ optimizer.Interface }

func (fixed) UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, _ dtypes.DType) {
	i := 0
	for v := range scope.IterVariables() {
		if g := gradients[0].Graph(); v.Trainable && v.InUseByGraph(g) {
			v.SetNodeValue(graph.Sub(v.NodeValue(g), graph.MulScalar(gradients[i], 0.1)))
			i++
		}
	}
}

// panicking is an optimizer that can do nothing.
type panicking struct{ optimizer.Interface }

func (panicking) UpdateGraphWithGradients(*model.Scope, []*graph.Node, dtypes.DType) {
	panic("no luck")
}

func TestLearningRate_errors(t *testing.T) {
	r := plugintest.CPU(t)
	batch := ones(t, 2)
	fresh := func(o *optim.Optimizer) func(t *testing.T) *managed.State {
		return func(t *testing.T) *managed.State { return newState(t, r, managed.WithOptimizer(o)) }
	}
	trained := func(o *optim.Optimizer) func(t *testing.T) *managed.State {
		return func(t *testing.T) *managed.State {
			state := fresh(o)(t)
			one(t, stepper(t, managed.TrainStep(slope)), state, batch)
			return state
		}
	}
	for _, row := range []struct {
		name  string
		state func(t *testing.T) *managed.State
		rate  float64
		want  string
		get   string // "" if the rate can be read
		is    error
	}{
		{"no optimizer", func(t *testing.T) *managed.State { return newState(t, r) }, 0.1,
			"no learning rate: the state has no optimizer, and no step with managed.WithStepOptimizer has added one yet (Stepper.Prepare adds it)", "no learning rate: the state has no optimizer, and no step with managed.WithStepOptimizer has added one yet (Stepper.Prepare adds it)", managed.ErrNoLearningRate},
		{"an optimizer without", fresh(optim.GoMLX(fixed{})), 0.1, "the optimizer managed_test.fixed keeps none in the variable /optimizers/learning_rate",
			"the optimizer managed_test.fixed keeps none in the variable /optimizers/learning_rate", managed.ErrNoLearningRate},
		{"an optimizer without, trained", trained(optim.GoMLX(fixed{})), 0.1, "the optimizer managed_test.fixed keeps none", "the optimizer managed_test.fixed keeps none", managed.ErrNoLearningRate},
		{"an optimizer that panics", fresh(optim.GoMLX(panicking{})), 0.1, "try the optimizer managed_test.panicking: ", "no luck", nil},
		{"not a number", trained(sgd()), math.NaN(), "to NaN: expected a finite number that is not negative", "", nil},
		{"infinite", trained(sgd()), math.Inf(1), "to +Inf: expected a finite number", "", nil},
		{"negative", trained(sgd()), -0.1, "to -0.1: expected a finite number that is not negative", "", nil},
		{"too large", trained(sgd()), 1e300, "to 1e+300: as Float32 it would be +Inf", "", nil},
		{"too small", trained(sgd()), 1e-300, "to 1e-300: as Float32 it would be 0", "", abilities.ErrRateTooSmall},
		{"closed", func(t *testing.T) *managed.State {
			state := trained(sgd())(t)
			require.NoError(t, state.Close())
			return state
		}, 0.1, "the state: used after Close", "the state: used after Close", managed.ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := row.state(t)
			before, readErr := state.LearningRate()
			err := state.SetLearningRate(row.rate)
			require.ErrorContains(t, err, "managed: set the learning rate to ")
			require.ErrorContains(t, err, row.want)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			if row.get != "" {
				if row.is != nil {
					require.ErrorIs(t, readErr, row.is)
				}
				require.ErrorContains(t, readErr, "managed: learning rate: ")
				require.ErrorContains(t, readErr, row.get)
				return
			}
			require.NoError(t, readErr)
			after, err := state.LearningRate()
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
	state := newState(t, r, managed.WithOptimizer(sgd()))
	require.NoError(t, state.SetLearningRate(1e300), "what holds it is not known yet")
	_, _, err := stepper(t, managed.TrainStep(slope)).Step(t.Context(), state, batch)
	require.ErrorContains(t, err, "the learning rate was set to 1e+300: as Float32 it would be +Inf")
	require.NoError(t, state.SetLearningRate(0.25))
	one(t, stepper(t, managed.TrainStep(slope)), state, batch)
	require.InDelta(t, 0.5, floats(t, state, "/w")[0], 1e-6)
}

// The learning rate has the type of the loss.
func TestLearningRate_ofAnyWidth(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		dtype dtypes.DType
		want  float64 // 0.1 as stored
	}{
		{dtypes.Float64, 0.1},
		{dtypes.Float32, 0.10000000149011612},
		{dtypes.BFloat16, 0.10009765625}, // the nearest one
	} {
		t.Run(row.dtype.String(), func(t *testing.T) {
			state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
			step := stepper(t, managed.TrainStep(slopeOf(row.dtype)))
			for range 2 { // before and after the first step
				require.NoError(t, state.SetLearningRate(0.1))
				one(t, step, state, ones(t, 2))
				rate, err := state.LearningRate()
				require.NoError(t, err)
				require.Equal(t, row.want, rate)
				v, err := state.Value("/optimizers/learning_rate")
				require.NoError(t, err)
				require.Equal(t, row.dtype, v.DType())
			}
			kept, before := take(t, state), bits(t, state)
			one(t, step, state, ones(t, 2))
			require.NoError(t, state.SetLearningRate(0.5))
			require.NoError(t, kept.Restore(t.Context()))
			require.Equal(t, before, bits(t, state), "the learning rate is part of a snapshot")
			require.NoError(t, kept.Close())
		})
	}
}

func ExampleState_SetLearningRate() {
	runtime, err := xla.Open(context.Background(), xla.CPU)
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(sgd()))
	if err != nil {
		log.Fatal(err)
	}
	defer state.Close()
	if err := state.SetLearningRate(0.5); err != nil { // before the first step, or between any two
		log.Fatal(err)
	}
	rate, err := state.LearningRate()
	fmt.Println(rate, err)
	// Output:
	// 0.5 <nil>
}

// A state whose steps bring their own optimizers has the rate of the one step; of several, each by its name.
func TestR37_theRateOfAStepWithBy(t *testing.T) {
	state := newState(t, plugintest.CPU(t))
	batch := first(t, line(t, 16).Batches(16))
	require.ErrorContains(t, state.SetLearningRate(0.5), "no learning rate: the state has no optimizer, and no step with managed.WithStepOptimizer has added one yet (Stepper.Prepare adds it)")
	require.NoError(t, stepper(t, managed.TrainStep(regression, managed.WithStepOptimizer("own", adam()))).Prepare(t.Context(), state, batch))
	require.NoError(t, state.SetLearningRate(0.5))
	rate, err := state.LearningRate()
	require.NoError(t, err)
	require.Equal(t, 0.5, rate)
	require.Equal(t, []float32{0.5}, floats(t, state, "/own/optimizers/learning_rate"))

	require.NoError(t, stepper(t, managed.TrainStep(regression, managed.WithStepOptimizer("other", adam()))).Prepare(t.Context(), state, batch))
	err = state.SetLearningRate(0.25)
	require.ErrorIs(t, err, managed.ErrNoLearningRate)
	require.ErrorContains(t, err, `steps with managed.WithStepOptimizer have ["/own/optimizers/learning_rate" "/other/optimizers/learning_rate"]: use Value and SetValue`)
}
