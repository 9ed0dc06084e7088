package callbacks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestStartAt(t *testing.T) {
	for _, row := range []struct {
		name     string
		start    loop.Period
		patience callbacks.Patience
		values   []float64
		steps    int64
		best     float64
	}{
		{"from the first value", loop.Steps(0), callbacks.Evaluations(2), []float64{1, 5, 5, 5, 5, 5, 5}, 3, 1},
		{"the values before are none", loop.Steps(4), callbacks.Evaluations(2), []float64{1, 5, 5, 5, 5, 5, 5}, 6, 5},
		{"patience in steps", loop.Steps(4), loop.Steps(3), []float64{1, 5, 5, 5, 5, 5, 5, 5}, 7, 5},
		{"patience in samples", loop.Samples(3), loop.Samples(2), []float64{1, 5, 5, 5, 5, 5, 5, 5}, 5, 5},
		{"never reached", loop.Steps(100), callbacks.Evaluations(1), []float64{1, 2, 3, 4}, 4, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, early := stopped(t, "x", row.values, callbacks.StopEarly("x", row.patience, callbacks.Monitor{StartAt: row.start, Mode: loop.Lowest}))
			require.Equal(t, row.steps, result.Elapsed.Steps)
			if early != nil {
				require.Equal(t, row.best, early.Best)
			}
		})
	}
}

// Wherever a run was stopped and resumed, it ends as one that was not.
func TestStartAt_resumed(t *testing.T) {
	values := []float64{1, 6, 5, 4, 4, 4, 4, 4}
	stop := callbacks.StopEarly("x", callbacks.Evaluations(2), callbacks.Monitor{StartAt: loop.Steps(3), Mode: loop.Lowest})
	for at := range int64(6) {
		l, data := following("x", values...)
		first, err := l.Run(t.Context(), 0, data, stop, loop.Until(loop.Steps(at)))
		require.NoError(t, err)
		l, data = following("x", values[at:]...)
		second, err := l.Run(t.Context(), first.State, rest(data), stop, loop.Continue(first.Elapsed, first.History))
		require.NoError(t, err)
		require.EqualValues(t, 6, second.Elapsed.Steps, at)
	}
}

func TestStartAt_keepBestAndPlateau(t *testing.T) {
	l, data := following("x", 1, 2, 4, 3, 5)
	result, err := l.Run(t.Context(), 0, data, callbacks.KeepBest("x", callbacks.Monitor{StartAt: loop.Steps(3), Mode: loop.Lowest}))
	require.NoError(t, err)
	require.Equal(t, 4, result.State)
	var at []int64
	l, data = following("x", 1, 2, 4, 3, 5)
	_, err = l.Run(t.Context(), 0, data, callbacks.OnBest("x", func(_ context.Context, r loop.Report) error {
		at = append(at, r.Elapsed.Steps)
		return nil
	}, callbacks.Monitor{StartAt: loop.Steps(3), Mode: loop.Lowest}))
	require.NoError(t, err)
	require.Equal(t, []int64{3, 4}, at)
	for _, p := range []loop.Period{loop.Steps(-1)} {
		_, err := byHand(callbacks.StopEarly("x", callbacks.Evaluations(1), callbacks.Monitor{StartAt: p, Mode: loop.Lowest}))
		require.EqualError(t, err, fmt.Sprintf("callbacks: stop early: start at: period must be zero or positive, got %v", p))
	}
}
