package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// Two optimizers of one name would share the rate of the first.
func TestBy_oneNameOneOptimizer(t *testing.T) {
	for _, row := range []struct{ first, same, second *optim.Optimizer }{
		{optim.New(0.001, optim.Momentum{}), optim.New(0.001, optim.Momentum{}), optim.New(0.1, optim.Momentum{})},
		{optim.New(0.1, optim.Momentum{}), optim.New(0.1, optim.Momentum{}), optim.New(0.1, optim.Lion{})},
	} {
		state := newState(t, plugintest.CPU(t))
		batch := first(t, line(t, 16).Batches(16))
		with := func(o *optim.Optimizer) *managed.Stepper {
			return stepper(t, managed.TrainStep(regression, managed.WithStepOptimizer("opt", o)))
		}
		one(t, with(row.first), state, batch)
		one(t, with(row.same), state, batch)
		_, _, err := with(row.second).Step(t.Context(), state, batch)
		require.ErrorContains(t, err, `WithStepOptimizer "opt": another step of the state has an optimizer of this name with `)
	}
}
