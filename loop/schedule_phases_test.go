package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

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
