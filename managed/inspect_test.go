package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func TestStepper_costsAndMemory(t *testing.T) {
	state := newState(t, plugintest.Uncached(t), managed.WithOptimizer(sgd()))
	step := managed.TrainStep(regression)
	ask := map[string]func() error{
		"cost":   func() error { _, err := step.Costs(); return err },
		"memory": func() error { _, err := step.Memory(); return err },
	}
	none := func() {
		for what, err := range ask {
			require.EqualError(t, err(), "managed: "+what+" of the train step: it has no programs yet: make a step, or call Prepare with a state and a batch, before")
		}
	}
	none()
	for _, n := range []int{16, 32} {
		_, _, err := step.Step(t.Context(), state, first(t, line(t, 64).Batches(n)))
		require.NoError(t, err)
	}
	costs, err := step.Costs()
	require.NoError(t, err)
	memory, err := step.Memory()
	require.NoError(t, err)
	require.Len(t, costs, 2)
	require.Len(t, memory, 2)
	require.Greater(t, costs[1].FLOPs, costs[0].FLOPs, "twice the batch")
	require.EqualValues(t, 16*2*4, memory[1].Arguments-memory[0].Arguments, "x and y of 16 samples more")
	require.Positive(t, memory[0].Aliased)
	_, _, err = step.StepBlock(t.Context(), state, []data.Batch{first(t, line(t, 64).Batches(16))})
	require.NoError(t, err)
	costs, err = step.Costs()
	require.NoError(t, err)
	t.Logf("a step %+v, a block of up to 100 %+v", costs[0], costs[2])
	require.Less(t, costs[2].FLOPs, 3*costs[0].FLOPs, "the body of a loop counts once")
	require.NoError(t, step.Close())
	none()

	r := plugintest.Go(t)
	plain, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	_, _, err = step.Step(t.Context(), plain, first(t, line(t, 64).Batches(16)))
	require.NoError(t, err)
	_, err = step.Costs()
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.ErrorContains(t, err, "managed: cost of the train step: ")
	_, err = step.Memory()
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.NoError(t, step.Close())
	require.NoError(t, plain.Close())
}
