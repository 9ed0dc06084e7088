package runs_test

import (
	"context"
	"math"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/runs"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// A save fails in the background; the run ends in the step that follows, long before the next save is due.
func TestF05_aFailedSaveEndsTheRunAtTheNextStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const saved, failed = 10, 15
		closed := make(chan struct{})
		full := vfs.Hook(&vfs.Mem{}, func(c vfs.Call) error {
			if c.Op == vfs.OpMkdir {
				<-closed
				return syscall.ENOSPC
			}
			return nil
		})
		f := openMem(t, full, checkpoint.Options{})
		// The disk says no while step failed is made; the step waits until the background knows.
		l := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
			if batch+1 == failed {
				close(closed)
				synctest.Wait()
			}
			return c, c.step(batch), nil
		}))
		result, err := l.Run(t.Context(), &counter{Rate: 1}, loop.Data[int64](numbered(0)), loop.Until(loop.Steps(5000)), runs.Save(f, loop.At(loop.Steps(saved))))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "loop: step 15: a save has failed: checkpoint: ")
		require.EqualValues(t, failed, result.Elapsed.Steps)
		t.Logf("F05: a save of step %d failed in the background while step %d was made: the run ended behind that step", saved, failed)
	})
}

// The look for failures costs the blocks of steps nothing.
func TestSaveLeavesBlocksWhole(t *testing.T) {
	blocked := func(options ...loop.Option) (calls int) {
		l := loop.New(loop.On[*counter, int64](loop.EachStep, counted{calls: &calls}))
		_, err := l.Run(t.Context(), &counter{Rate: 1}, loop.Data[int64](numbered(0)), append(options, loop.Until(loop.Steps(1000)))...)
		require.NoError(t, err)
		return calls
	}
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	with, without := blocked(runs.Save(f, loop.Never)), blocked()
	require.Less(t, with, 200, "of 1000 steps; %d without Save", without)
}

type counted struct {
	blocks
	calls *int
}

func (b counted) StepBlock(ctx context.Context, c *counter, batches []int64) (*counter, []loop.Logs, error) {
	*b.calls++
	return b.blocks.StepBlock(ctx, c, batches)
}

// What another watcher changes in the turn that saves is saved with it, although Save stands first: by loop.AfterAll
// alone.
func TestSaveStandsBehindAllWatchers(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	state := &counter{Rate: 1}
	_, err := counting().Run(t.Context(), state, loop.Data[int64](numbered(0)), runs.Save(f, loop.At(loop.Steps(8))), loop.Until(loop.Steps(8)),
		loop.Watch(loop.At(loop.Steps(8)), func(context.Context, loop.Report) error { state.Rate = 0.25; return nil }))
	require.NoError(t, err)
	var c counter
	_, err = runs.ResumeAt(t.Context(), f, 8, &c)
	require.NoError(t, err)
	require.Equal(t, 0.25, c.Rate)
}

// The best state of the whole run comes back, whichever of its processes had it.
func TestKeepBestSurvivesRestarts(t *testing.T) {
	run := func(f *checkpoint.Folder, until loop.Steps) (loop.Result[*counter], error) {
		state := &counter{Rate: 1}
		start, err := runs.Resume(t.Context(), f, state)
		require.NoError(t, err)
		return counting().Run(t.Context(), state, loop.Data[int64](numbered(start.Elapsed.Steps)), start.Option(), loop.Until(until),
			runs.KeepBest(f, checkpoint.Lowest(1, "test")), runs.Save(f, loop.Every(loop.Steps(20))))
	}
	keep := checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(1), checkpoint.Lowest(1, "test")}}
	whole, err := run(openMem(t, &vfs.Mem{}, keep), 200)
	require.NoError(t, err)
	best, err := whole.History.Best("test", loop.Lowest)
	require.NoError(t, err)
	require.Less(t, best.Elapsed.Steps, int64(190), "not simply the last one")
	require.Equal(t, best.Value, math.Cos(whole.State.Weight*5), "the state is that of the best evaluation")
	for _, stops := range [][]loop.Steps{{loop.Steps(best.Elapsed.Steps) - 3}, {loop.Steps(best.Elapsed.Steps)}, {loop.Steps(best.Elapsed.Steps) + 3, loop.Steps(best.Elapsed.Steps) + 9}} {
		f := openMem(t, &vfs.Mem{}, keep)
		for _, stop := range append(stops, 200) {
			result, err := run(f, stop)
			require.NoError(t, err)
			if stop == 200 {
				require.Equal(t, whole.State.Weight, result.State.Weight, "stopped at %v", stops)
			}
		}
		require.NoError(t, f.Close())
	}
}

func TestKeepBestRefuses(t *testing.T) {
	keep := func(by ...checkpoint.Retention) *checkpoint.Folder {
		return openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: by})
	}
	for _, row := range []struct {
		name   string
		option loop.Option
		want   string
	}{
		{"the other direction", runs.KeepBest(keep(checkpoint.Highest(1, "test_loss")), checkpoint.Highest(1, "test_loss")), `by its name "test_loss" is better the lower it is`},
		{"no folder", runs.KeepBest(nil, checkpoint.Lowest(1, "test")), "no folder given"},
		{"more than one", runs.KeepBest(keep(checkpoint.Lowest(2, "test")), checkpoint.Lowest(2, "test")), "expected Lowest(1, …) or Highest(1, …)"},
		{"not by a metric", runs.KeepBest(keep(), checkpoint.Last(1)), "expected Lowest(1, …) or Highest(1, …)"},
		{"nothing", runs.KeepBest(keep(), checkpoint.Retention{}), "a Retention without content"},
		{"a folder that does not keep it", runs.KeepBest(keep(checkpoint.Highest(1, "test")), checkpoint.Lowest(1, "test")), `the folder folder does not keep it: add Lowest(1, "test") to Keep`},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := &counter{Rate: 1}
			_, err := counting().Run(t.Context(), state, loop.Data[int64](numbered(0)), row.option, loop.Until(loop.Steps(8)))
			require.ErrorContains(t, err, row.want)
			require.Zero(t, state.Weight, "no step was made")
		})
	}
	_, err := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, s int, _ int64) (int, loop.Logs, error) { return s, loop.Logs{}, nil })).
		Run(t.Context(), 0, loop.Data[int64](numbered(0)), runs.KeepBest(keep(checkpoint.Lowest(1, "test")), checkpoint.Lowest(1, "test")), loop.Until(loop.Steps(3)))
	require.ErrorContains(t, err, "a state of type int cannot be restored")
}
