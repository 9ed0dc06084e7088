package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// module is a model of some other library: it has its own way to apply gradients and knows nothing of lazo.
type module struct{ weight float64 }

func (m module) applyGradients(g float64) module { return module{m.weight - 0.1*g} }

func TestB31_anyStateWorks(t *testing.T) {
	step := func(_ context.Context, m module, x int) (module, loop.Logs, error) {
		loss := (m.weight - float64(x)) * (m.weight - float64(x))
		var logs loop.Logs
		logs.Loss("loss", loss)
		return m.applyGradients(2 * (m.weight - float64(x))), logs, nil
	}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), module{1}, loop.Data[int](forever), loop.Until(loop.Steps(3)))
	require.NoError(t, err)
	at, _, err := result.History.Series("loss")
	require.NoError(t, err)
	require.Len(t, at, 3)
	for i, e := range at {
		require.EqualValues(t, i+1, e.Steps, "Ciclo counts 0, 1, 2: before the step")
	}
	require.Equal(t, module{1}, result.State, "the weight is right from the start")
}
