package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// A seed gives the same initial parameters on each device: one of the CPU, four of it, and GoMLX's own backend.
func TestInitialValues_areTheSameOnEachDevice(t *testing.T) {
	plain := plugintest.Go(t)
	cpu, four := plugintest.CPU(t), plugintest.Devices(t, 4)
	step := stepper(t, managed.TrainStep(noisy))
	initial := func(s strategies.Strategy, seed int64) map[string][]byte {
		state, err := managed.New(s, managed.WithOptimizer(sgd()), managed.WithSeed(seed))
		require.NoError(t, err)
		defer func() { require.NoError(t, state.Close()) }()
		require.NoError(t, step.Prepare(t.Context(), state, firstBatch(t)))
		return bits(t, state)
	}
	one := initial(strategies.Jit(cpu), 5)
	require.Greater(t, len(one), 2)
	for _, s := range []strategies.Strategy{strategies.Jit(cpu), strategies.Jit(four), onFour(t, four, strategies.Parallel{}), strategies.Jit(plain)} {
		require.Equal(t, one, initial(s, 5), "%v", s)
	}
	require.NotEqual(t, one, initial(strategies.Jit(cpu), 6))
	t.Logf("%d values of a state with equal bits on 4 kinds of device", len(one))
}
