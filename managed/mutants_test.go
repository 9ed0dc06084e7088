package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// What mutants found untested, behaviour by behaviour.

// The rate in force is that of the last update, and a device that does not answer is an error of both rates.
func TestRatesInForce(t *testing.T) {
	f := &failingStrategy{Strategy: strategies.Jit(plugintest.CPU(t))}
	rule := optim.New(0.5, optim.ScaleBySchedule(optim.Cosine(1, 0.5, 40)))
	state, err := managed.New(f, managed.WithOptimizer(rule))
	require.NoError(t, err)
	step := stepper(t, managed.TrainStep(regression))
	for range 3 {
		one(t, step, state, first(t, line(t, 16).Batches(16)))
	}
	rates, err := state.RatesInForce()
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"": rule.RateAt(2)}, rates)
	require.Less(t, rates[""], 0.5)
	for k := range 2 { // the rate, and the count of updates
		f.at = f.calls + 1 + k
		_, err = state.RatesInForce()
		require.ErrorIs(t, err, errInjected)
	}
	require.NoError(t, state.Close())
}

// A value that no checkpoint can hold is an error of the save, which would else lack it.
func TestContent_ofATypeThatNoFileHas(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		b.Scope().VariableWithValue("z", complex128(1)).SetTrainable(false).NodeValue(b.Graph())
		regression(b)
	}))
	one(t, step, state, first(t, line(t, 16).Batches(16)))
	_, err := state.Content(t.Context())
	require.ErrorContains(t, err, "managed: content: /z: values of dtype Complex128 cannot be kept in a checkpoint")
}
