package managed_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// An optimizer in a scope makes the steps that it makes without one, and has its rate and its counts there: GoMLX's,
// whose optimizers train what is below their scope, ours, and a user's.
func TestBy_trainsAsWithoutAScope(t *testing.T) {
	four, err := strategies.DataParallel(plugintest.Devices(t, 4), strategies.Parallel{})
	require.NoError(t, err)
	r := plugintest.CPU(t)
	ofAdam := []string{"/dense/AdamOptimizer/step", "/dense/optimizers/learning_rate",
		"/AdamOptimizer/dense/dense/biases_1st_moment", "/AdamOptimizer/dense/dense/biases_2nd_moment",
		"/AdamOptimizer/dense/dense/weights_1st_moment", "/AdamOptimizer/dense/dense/weights_2nd_moment"}
	for _, row := range []struct {
		name     string
		rule     *optim.Optimizer
		strategy strategies.Strategy
		keeps    []string
	}{
		{"GoMLX's Adam", adam(), strategies.Jit(r), ofAdam},
		{"on four devices", adam(), four, ofAdam},
		{"operation by operation", adam(), strategies.Eager(r), ofAdam},
		{"GoMLX's gradient descent", sgd(), strategies.Jit(r), []string{"/dense/optimizers/learning_rate"}},
		{"under a policy", adam(), strategies.Jit(r), ofAdam},
		{"a chain", optim.New(0.01, optim.Adam{}, optim.Frozen(optim.Optional(optim.Under("/elsewhere")))), strategies.Jit(r), nil},
		{"a user's", optim.GoMLX(fixed{}), strategies.Jit(r), []string{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			train := func(options ...managed.StepOption) *managed.State {
				given := []managed.Option{managed.WithOptimizer(row.rule)}
				if row.name == "under a policy" {
					given = append(given, managed.WithPolicy(optim.MixedBFloat16()))
				}
				state, err := managed.New(row.strategy, given...)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, state.Close()) })
				learn(t, state, stepper(t, managed.TrainStep(regression, options...)), line(t, 64).Batches(16), 5)
				return state
			}
			plain, scoped := train(), train(managed.WithStepOptimizer("dense", row.rule)) // the scope that the layer has
			for _, name := range []string{"/dense/dense/weights", "/dense/dense/biases"} {
				require.InDeltaSlice(t, floats(t, plain, name), floats(t, scoped, name), 1e-6, name)
			}
			if row.keeps != nil {
				want := append([]string{"/#rngState", "/dense/dense/weights", "/dense/dense/biases", "/dense/global_step", "/steps_by"}, row.keeps...)
				require.ElementsMatch(t, want, scoped.Names())
			}
			for _, name := range scoped.Names() {
				require.False(t, strings.Contains(name, "..") || name == "/global_step", name)
			}
		})
	}
}

// Two train steps on one state count apart, and the state's own count is that of the step without a scope.
func TestBy_countsApart(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	build := func(b *managed.Builder) { regression(b); b.Metric("steps", b.Steps()) }
	plain, scoped := stepper(t, managed.TrainStep(build)), stepper(t, managed.TrainStep(build, managed.WithStepOptimizer("own", adam())))
	batch := first(t, line(t, 16).Batches(16))
	for _, step := range []*managed.Stepper{scoped, plain, scoped, scoped, plain} {
		one(t, step, state, batch)
	}
	for name, want := range map[string]int64{"/global_step": 2, "/own/global_step": 3} {
		v, err := state.Value(name)
		require.NoError(t, err)
		require.Equal(t, want, tensors.ToScalar[int64](v), name)
	}
	require.Equal(t, []float32{3}, floats(t, state, "/own/AdamOptimizer/step"))
	require.False(t, slices.ContainsFunc(state.Names(), func(name string) bool { return strings.Contains(name, "..") }))
	_, logs, err := scoped.Step(t.Context(), state, batch)
	require.NoError(t, err)
	require.Equal(t, 5.0, float(t, logs, "steps"), "of the state, by whatever optimizer")
}

// Steps with their own Adams that train one parameter in turns are independent Adams, as in optax. With common moments
// and separate counts, an actor and a critic with a shared torso were trained by neither rule.
func TestBy_adamsOfOneParameterAreIndependent(t *testing.T) {
	for name, rule := range map[string]optim.Transformation{"adam": optim.Adam{}, "adamax": optim.Adamax{}} {
		state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(0.05, rule)))
		towards := func(target float64, options ...managed.StepOption) *managed.Stepper {
			return stepper(t, managed.TrainStep(func(b *managed.Builder) {
				w := b.Scope().VariableWithValue("w", float32(0.5)).NodeValue(b.Field("x").Graph())
				b.Loss("loss", graph.Square(graph.AddScalar(w, -target)))
			}, options...))
		}
		steps := []*managed.Stepper{towards(1), towards(-2, managed.WithStepOptimizer("actor", optim.New(0.05, rule))),
			towards(3, managed.WithStepOptimizer("critic", optim.New(0.05, rule)))}
		targets := []float64{1, -2, 3}
		w, m, v := 0.5, make([]float64, 3), make([]float64, 3)
		batch := first(t, line(t, 16).Batches(16))
		for n := 1; n <= 20; n++ {
			for i, step := range steps {
				one(t, step, state, batch)
				gradient := 2 * (w - targets[i])
				m[i] = 0.9*m[i] + 0.1*gradient
				size := 0.0
				if name == "adam" {
					v[i] = 0.999*v[i] + 0.001*gradient*gradient
					size = math.Sqrt(v[i] / (1 - math.Pow(0.999, float64(n))))
				} else {
					v[i] = max(0.999*v[i], math.Abs(gradient))
					size = v[i]
				}
				w -= 0.05 * m[i] / (1 - math.Pow(0.9, float64(n))) / (size + 1e-8)
			}
		}
		require.InDelta(t, w, float64(floats(t, state, "/w")[0]), 1e-5, name)
	}
}
