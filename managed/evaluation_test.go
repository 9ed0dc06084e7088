package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func TestBeginEvaluation_refusals(t *testing.T) {
	r := plugintest.CPU(t)
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	test := stepper(t, managed.TestStep(measured))
	end, err := test.BeginEvaluation(t.Context(), state)
	require.NoError(t, err)
	made(t, test, state, some(t, 0, 2), false)
	require.NoError(t, state.MoveTo(t.Context(), strategies.Eager(r)))
	_, _, err = test.Step(t.Context(), state, some(t, 0, 1)[0])
	require.ErrorIs(t, err, xla.ErrBusy)
	require.ErrorContains(t, err, "during the evaluation")
	require.NoError(t, end(t.Context()))
	made(t, test, state, some(t, 0, 2), false)

	open, err := test.BeginEvaluation(t.Context(), state)
	require.NoError(t, err)
	made(t, test, state, some(t, 0, 2), false)
	live := pjrt.Live().Buffers
	require.NoError(t, state.Close())
	require.Less(t, pjrt.Live().Buffers, live)
	require.NoError(t, open(t.Context()), "the state was closed, and all is freed")
	_, err = test.BeginEvaluation(t.Context(), state)
	require.ErrorIs(t, err, managed.ErrClosed)
	require.EqualError(t, err, "managed: test step: begin an evaluation: the state: "+managed.ErrClosed.Error())
	_, err = test.BeginEvaluation(t.Context(), nil)
	require.ErrorContains(t, err, "the state is nil")
}
