package checkpoint_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

func TestBestIsSavedOffSchedule(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1, Best: 2, Metric: "test", Mode: loop.Lowest}}})
	result, _ := resumed(t, f, 100)
	at, values, err := result.History.Series("test")
	require.NoError(t, err)
	best := map[int64]float64{}
	for range 2 {
		low := -1
		for i := range values {
			if _, taken := best[at[i].Steps]; !taken && (low < 0 || values[i] < values[low]) {
				low = i
			}
		}
		best[at[low].Steps] = values[low]
	}
	for step, value := range best {
		c, err := f.Load(t.Context(), checkpoint.Step(step))
		require.NoError(t, err)
		require.Equal(t, value, c.Metrics["test"])
	}
	require.Len(t, steps(t, f), 3)
	_, first, err := result.History.Best("test", loop.Lowest)
	require.NoError(t, err)
	c, err := f.Best(t.Context(), "test", loop.Lowest)
	require.NoError(t, err)
	require.EqualValues(t, first.Steps, c.Step)
	_, err = f.Best(t.Context(), "other", loop.Lowest)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	for name, want := range map[string]string{"test": "set Mode to loop.Lowest or loop.Highest", "": "the metric has no name"} {
		_, err = f.Best(t.Context(), name, 0)
		require.ErrorContains(t, err, want)
	}
}

// A value that is no better is not worth a save, though the Retention with the metric keeps the last one too.
func TestBestIsNotTheLast(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1, Best: 1, Metric: "loss"}}})
	saved := 0
	f.SetClock(func() time.Time { saved++; return time.Now() })
	worse := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", float64(batch))
		return c, logs, nil
	}))

	_, _, err := run(t.Context(), loop.New(worse), &counter{Rate: 1}, saves(f, loop.Never), loop.Until(loop.Steps(20)))
	require.NoError(t, err)
	require.Equal(t, []checkpoint.Step{1, 20}, steps(t, f))
	require.Equal(t, 2, saved)
}

func TestBestSurvivesARestart(t *testing.T) {
	m := &vfs.Mem{}
	for i, loss := range []float64{5, 1, 4, 3, 2} {
		f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1, Best: 1, Metric: "loss"}}})
		c := content(i + 1)
		c.Metrics["loss"] = loss
		require.NoError(t, f.Save(t.Context(), checkpoint.Step(i+1), c))
		require.NoError(t, f.Close())
	}
	f := openMem(t, m, checkpoint.Options{})
	list, err := f.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, 1.0, list[0].Metrics["loss"])
	require.EqualValues(t, 2, list[0].Step)
	require.EqualValues(t, 5, list[1].Step)
	require.EqualValues(t, 756, list[0].Bytes)
}
