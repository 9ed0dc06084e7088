package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
)

// Two steps of one state that track a metric of one name in turns mix no numbers: the state's own metric reports it, a
// view has one for each step.
func TestTrack_ofTwoSteps(t *testing.T) {
	tracks := func(sign float64) func(b *managed.Builder) {
		return func(b *managed.Builder) {
			y := nn.Dense{Units: 1}.Apply(b.Scope().In("out"), b.Field("x"))
			if b.Training() {
				b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), y)))
			}
			b.Mean("value/first", graph.MulScalar(b.Field("x"), sign))
		}
	}
	for _, how := range []func(managed.Build, ...managed.StepOption) *managed.Stepper{managed.TrainStep, managed.TestStep} {
		state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(0.01, optim.Adam{})))
		first, second := how(tracks(1)), how(tracks(-1))
		batches := some(t, 1, 3)
		value := func(s *managed.Stepper, b data.Batch) float64 {
			return float(t, made(t, s, state, []data.Batch{b}, false), "value/first")
		}

		one := value(first, batches[0])
		value(second, batches[0]) // continues the metric, as when each epoch makes its own step
		value(second, batches[1])
		_, _, err := first.Step(t.Context(), state, batches[1])
		require.ErrorContains(t, err, `metric "value/first" of the state also has the numbers of another step, which ran after this one`)
		_, err = managed.Reset(t.Context(), state)
		require.NoError(t, err)
		require.Equal(t, one, value(first, batches[0]))

		view, err := state.View(t.Context())
		require.NoError(t, err)
		first, second = managed.TestStep(tracks(1)), managed.TestStep(tracks(-1))
		for _, b := range batches {
			plus, err := view.Step(t.Context(), first, b)
			require.NoError(t, err)
			minus, err := view.Step(t.Context(), second, b)
			require.NoError(t, err)
			require.Equal(t, float(t, plus, "value/first"), -float(t, minus, "value/first"))
			require.NotZero(t, float(t, plus, "value/first"))
		}
		require.NoError(t, view.Close())
	}
}
