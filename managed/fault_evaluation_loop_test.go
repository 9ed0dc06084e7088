package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// A loop's evaluations at several steps each have the figures of a test that nothing went before; two of them share one
// test step; the means of training are those of a run without any.
func TestS01_evaluationsInALoop(t *testing.T) {
	r := plugintest.CPU(t)
	one, two := line(t, 64), line(t, 48)
	test := stepper(t, managed.TestStep(measured, managed.RunningAverages()))
	train := stepper(t, managed.TrainStep(measured, managed.RunningAverages()))
	run := func(until int64, tasks ...loop.Task[*managed.State, data.Batch]) (*managed.State, *loop.History) {
		state := newState(t, r, managed.WithOptimizer(sgd()))
		tasks = append([]loop.Task[*managed.State, data.Batch]{loop.On(loop.EachStep, train)}, tasks...)
		result, err := loop.New(tasks...).Run(t.Context(), state, line(t, 160).Batches(16, data.Shuffle(1)), loop.Until(loop.Steps(until)))
		require.NoError(t, err)
		return state, result.History
	}
	every := loop.Every(loop.Steps(100))
	_, history := run(300,
		loop.Evaluate("one", test, one.Batches(16)).On(every),
		loop.Evaluate("two", test, two.Batches(16)).On(every))
	for _, name := range []string{"mean", "largest", "avg_loss"} {
		for i, at := range []int64{100, 200, 300} {
			state, alone := run(at)
			_, want, err := alone.Series(name)
			require.NoError(t, err)
			_, got, err := history.Series(name)
			require.NoError(t, err)
			require.Equal(t, want, got[:at], "%s of training", name)
			for of, set := range map[string]*data.Set{"one": one, "two": two} {
				var batches []data.Batch
				for b, err := range set.Batches(16).All() {
					require.NoError(t, err)
					batches = append(batches, b)
				}
				fresh := stepper(t, managed.TestStep(measured, managed.RunningAverages()))
				last := made(t, fresh, state, batches, true)
				_, figures, err := history.Series(name + "_" + of)
				require.NoError(t, err)
				require.Len(t, figures, 3)
				require.Equal(t, float(t, last, name), figures[i], "%s_%s at step %d", name, of, at)
				_, err = managed.Reset(t.Context(), state)
				require.NoError(t, err)
			}
		}
	}
}
