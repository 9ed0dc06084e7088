package loop_test

import (
	"context"
	"testing"

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
