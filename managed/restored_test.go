package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// A run that was over before it was resumed makes no step. Its values can be read by their names nevertheless.
func TestS03_aRunThatIsOverHasItsValues(t *testing.T) {
	r, set, f := plugintest.CPU(t), line(t, 64), folder(t, checkpoint.Options{})
	run := func() (*managed.State, loop.Result[*managed.State]) {
		state := newState(t, r, managed.WithOptimizer(sgd()))
		result, err := loop.New(loop.On(loop.EachStep, stepper(t, managed.TrainStep(regression)))).Run(t.Context(), state, set.Batches(8),
			f.Resume(), loop.Until(loop.Steps(20)))
		require.NoError(t, err)
		require.EqualValues(t, 20, result.Elapsed.Steps)
		return state, result
	}
	trained, _ := run()
	again, result := run()
	require.Equal(t, loop.UntilReached, result.Reason)
	require.Positive(t, trained.Parameters())
	require.Equal(t, trained.Parameters(), again.Parameters())
	require.ElementsMatch(t, trained.Names(), again.Names())
	require.Equal(t, bits(t, trained), bits(t, again))
	require.Equal(t, floats(t, trained, "/dense/dense/weights"), floats(t, again, "/dense/dense/weights"))
	_, err := again.Value("/none")
	require.ErrorContains(t, err, `managed: the state has no variable "/none"; it has ["/`)
	_, _, err = stepper(t, managed.TrainStep(regression)).Step(t.Context(), again, firstBatch(t))
	require.NoError(t, err)
	require.ElementsMatch(t, trained.Names(), again.Names(), "each once")
	require.Equal(t, trained.Parameters(), again.Parameters())
}
