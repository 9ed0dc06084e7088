package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// evaluation logs the state under a name; it changes nothing.
func evaluation(_ context.Context, s, _ int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("evaluated", float64(s))
	return s, logs, nil
}

func TestMarks_startAndEndAreRowsOfTheirOwn(t *testing.T) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), loop.On(loop.Every(loop.Steps(2)).AndAtStart().AndAtEnd(), loop.StepFunc(evaluation)))
	var seen []int64
	watch := loop.Watch(loop.AtStart.AndAtEnd(), func(_ context.Context, r loop.Report) error {
		seen = append(seen, r.Elapsed.Steps)
		return nil
	})
	result, err := l.Run(t.Context(), 100, numbers(5), watch)
	require.NoError(t, err)
	at, values, err := result.History.Series("evaluated")
	require.NoError(t, err)
	var steps []int64
	for _, e := range at {
		steps = append(steps, e.Steps)
	}
	require.Equal(t, []int64{0, 2, 4, 5}, steps)
	require.Equal(t, []float64{100, 101, 106, 110}, values)
	require.Equal(t, []int64{0, 5}, seen)
	require.EqualValues(t, 5, result.Elapsed.Steps, "they are not counted as turns")
}

// A date is due in the turn in which it passes, once, also in a run that is resumed after it.
func TestDates(t *testing.T) {
	now := time.Now()
	fired := func(when loop.Schedule, from loop.Elapsed) (n int) {
		_, err := loop.New(loop.On(when, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { n++; return s, loop.Logs{}, nil }))).
			Run(t.Context(), 0, rest(numbers(5)), loop.Continue(from, nil))
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 0, fired(loop.At(loop.Date(now.Add(-time.Hour).UnixNano())), loop.Elapsed{}), "it was over when the run began")
	require.Equal(t, 0, fired(loop.At(loop.Date(now.Add(time.Hour).UnixNano())), loop.Elapsed{}))
	require.Equal(t, 5, fired(loop.After(loop.Date(now.Add(-time.Hour).UnixNano())), loop.Elapsed{}))
	earlier := loop.Elapsed{Steps: 3, Samples: 3, Time: time.Minute, Date: loop.Date(now.Add(-2 * time.Hour).UnixNano())}
	require.Equal(t, 1, fired(loop.At(loop.Date(now.Add(-time.Hour).UnixNano())), earlier), "it passed during the pause")
}
