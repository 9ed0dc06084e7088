package callbacks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestKeepBest_refusesWhatCannotBeCopied(t *testing.T) {
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s *int, _ int) (*int, loop.Logs, error) { return s, loop.Logs{}, nil }))
	for _, option := range []loop.Option{callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}), callbacks.NonFinite(callbacks.Recovery{Limit: 1}), callbacks.NonFinite(callbacks.Recovery{Limit: 1, Copies: loop.EachStep})} {
		_, err := loop.New(step).Run(t.Context(), new(int), numbers(1), option)
		require.ErrorContains(t, err, "a state of type *int changes in place: to restore an earlier one, give it the method Snapshot that loop.Stepper describes")
	}
	_, err := loop.New(step).Run(t.Context(), new(int), numbers(1), callbacks.NonFinite())
	require.NoError(t, err, "nothing is kept")
}

func TestKeepBest_copyFails(t *testing.T) {
	boom := errors.New("no room")
	l, data := followingInPlace("x", 2, 1)
	result, err := l.Run(t.Context(), &cell{fail: boom}, data, callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}))
	require.ErrorIs(t, err, boom)
	require.Equal(t, loop.Failed, result.Reason)
}
