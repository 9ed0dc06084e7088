package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/memstore"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// fill saves those of the first run that a newer one has replaced, as on a slow disk.
func fill(t T, f *checkpoint.Folder) {
	t.Helper()
	ctx := context.Background()
	for _, step := range []checkpoint.Step{10, 20, 30, 40} {
		if err := f.Verify(ctx, step); errors.Is(err, checkpoint.ErrNoStep) {
			c, err := f.Load(ctx, 40)
			require.NoError(t, err)
			content := c.Content()
			content.Sections["loop"] = map[string]any{"steps": step, "samples": step, "time": 1, "date": 1}
			require.NoError(t, f.Save(ctx, step, content))
		}
	}
}

// runOf is whose run a checkpoint is.
func runOf(t T, c *checkpoint.Checkpoint) float64 {
	t.Helper()
	var state counter
	require.NoError(t, state.Restore(context.Background(), c))
	return state.Weight
}

// R09: a run that begins before the newest step is refused before its first step. With Overwrite the later steps are
// replaced by its first checkpoint, in each state that a loss of power, or of the store, may leave.
func TestR09_newestIsNeverAnotherRuns(t *testing.T) {
	ctx := t.Context()
	old := func(t *testing.T) *vfs.Mem {
		m := &vfs.Mem{}
		f := openMem(t, m, checkpoint.Options{})
		require.NoError(t, mark(t, f, 1, 0))
		fill(t, f)
		require.NoError(t, f.Close())
		return m
	}
	states := 0
	for _, from := range []checkpoint.Step{10, 20} {
		made := 0
		f := openMem(t, old(t), checkpoint.Options{})
		err := mark(t, f, 2, from, loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { made++; return nil }))
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorContains(t, err, fmt.Sprintf("40, and the run begins with %d: resume from the newest, or use another folder; with Overwrite the first save removes them", from))
		require.Zero(t, made, "before the first step")

		m := old(t)
		looks := func(crashed *vfs.Mem) { // an invariant of each moment
			states++
			g := openMem(t, crashed, checkpoint.Options{})
			list, err := g.List(ctx)
			require.NoError(t, err)
			saved := false
			for _, i := range list {
				c, err := g.Load(ctx, i.Step)
				require.NoError(t, err)
				saved = saved || runOf(t, c) == 2
			}
			newest, err := g.Newest(ctx)
			require.NoError(t, err)
			if saved {
				require.EqualValues(t, 2, runOf(t, newest))
			} else {
				require.GreaterOrEqual(t, newest.Step, from)
			}
		}
		random := rand.New(rand.NewPCG(9, 9))
		f = openMem(t, vfs.Hook(m, func(c vfs.Call) error {
			if c.Op.Changes() && c.Op != vfs.OpWrite {
				looks(m.Crash(0, nil))
				looks(m.Crash(1, nil))
				looks(m.Crash(0.5, random))
			}
			return nil
		}), checkpoint.Options{Overwrite: true})
		require.NoError(t, mark(t, f, 2, from))
		looks(m.Crash(0, nil))
		c, err := f.Newest(ctx)
		require.NoError(t, err)
		require.EqualValues(t, from+15, c.Step)
		require.EqualValues(t, 2, runOf(t, c))
		require.NoError(t, f.Close())
	}

	store := &memstore.Memory{}
	for run := 1.0; run <= 2; run++ {
		f := openStore(t, store, checkpoint.Options{Overwrite: true})
		require.NoError(t, mark(t, f, run, checkpoint.Step(20*(run-1))))
		if run == 1 {
			fill(t, f)
		}
		list, err := f.List(ctx)
		require.NoError(t, err)
		for _, i := range list {
			c, err := f.Load(ctx, i.Step)
			require.NoError(t, err)
			if i.Step > 20 {
				require.Equal(t, run, runOf(t, c))
			}
		}
	}
	t.Logf("R09: %d states of a folder that a run goes on in from an earlier step: the newest is another run's in 0 of those in which it has saved", states)
}

// A store that hangs keeps a run that was cancelled for a while, and no longer.
func TestR25_aStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		f := openMem(t, vfs.Hook(&vfs.Mem{}, func(c vfs.Call) error {
			if c.Op == vfs.OpMkdir {
				<-let
			}
			return nil
		}), checkpoint.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		begin := time.Now()
		_, _, err := run(ctx, heedingLoop(), heeding{counter: &counter{Rate: 1}}, saves(f, loop.At(loop.Steps(3))),
			loop.Watch(loop.At(loop.Steps(5)), func(context.Context, loop.Report) error { cancel(errHome); return nil }))
		require.ErrorIs(t, err, errHome)
		require.ErrorContains(t, err, "the run was cancelled, and the store has not finished the save 5m0s later")
		require.Equal(t, 5*time.Minute, time.Since(begin))
		close(let)
		synctest.Wait()
	})
}

// The place in the data that is saved is that of the step, also where the run was cancelled while it waited for data;
// and a step that has none is not saved.
func TestR12_theSavedPlaceIsThatOfTheStep(t *testing.T) {
	for _, row := range []struct {
		name  string
		waits int64 // the batch that the run waits for when it is cancelled, and that comes
		never bool  // or does not
		heeds int64 // the step that is broken off
		saved int64
		err   string
	}{
		{name: "it comes", waits: 7, saved: 7},
		{name: "it does not", waits: 7, never: true, saved: 6, err: loop.ErrSourceLeft.Error()},
		{name: "its step is broken off", heeds: 7, saved: 5, err: "not saved, since 1 of the batches taken from the data is not trained"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
				ctx, cancel := context.WithCancelCause(t.Context())
				position, let := int64(0), make(chan struct{})
				source := func(yield func(int64, error) bool) {
					for {
						if position+1 == row.waits {
							cancel(errHome)
							if row.never {
								<-let
								return
							}
						}
						position++
						if !yield(position, nil) {
							return
						}
					}
				}
				steps := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(ctx context.Context, h heeding, batch int64) (heeding, loop.Logs, error) {
					if batch == row.heeds {
						cancel(errHome)
						return h, loop.Logs{}, context.Cause(ctx)
					}
					return h, h.step(batch), nil
				})))
				_, err := steps.Run(ctx, heeding{counter: &counter{Rate: 1}}, loop.Data[int64](source),
					saves(f, loop.At(loop.Steps(5)), checkpoint.Options{Also: map[string]any{"position": &position}}))
				require.ErrorIs(t, err, errHome)
				require.ErrorContains(t, err, row.err)
				c, err := f.Newest(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, row.saved, c.Step)
				var at int64
				require.NoError(t, c.Section("position", &at))
				require.Equal(t, row.saved, at)
				close(let)
				synctest.Wait()
			})
		})
	}
}

// A run that counts in epochs takes a batch early where the batches do not say where an epoch ends. The place that the
// source has counted is then not that of the step.
func TestS03_aPlaceThatIsAheadIsNotSaved(t *testing.T) {
	const wrong = "checkpoint: save step 3 into folder: not saved, since 1 of the batches taken from the data is not trained, " +
		"so section \"position\" of the option Also does not belong to this step: if the run counts in epochs, count in steps or " +
		"give the batches the method InEpoch; if a step failed or stopped, resume from an earlier checkpoint"
	for _, row := range []struct {
		name    string
		options loop.Option
		every   int64
		ends    bool  // with the context, while the source waits
		saved   int64 // the last step
		err     string
	}{
		{name: "epochs", options: loop.Until(loop.Epochs(1)), every: 3, err: wrong},
		{name: "single steps", options: loop.Options(loop.SingleSteps(), loop.Until(loop.Epochs(1))), every: 3, err: wrong},
		{name: "the last batch", options: loop.Until(loop.Epochs(1)), every: 10, saved: 10},
		{name: "in the middle", options: loop.Until(loop.Epochs(1)), every: 10, ends: true, err: "save step 4 into folder: not saved, since 1 of the batches"},
		{name: "control: steps", options: loop.Until(loop.Steps(9)), every: 3, saved: 9},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
				ctx, cancel := context.WithCancelCause(t.Context())
				position, let := int64(0), make(chan struct{})
				source := func(yield func(int64, error) bool) {
					for position < 10 {
						if row.ends && position == 5 {
							cancel(errHome)
							<-let
							return
						}
						position++
						if !yield(position, nil) {
							return
						}
					}
				}
				steps := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, h heeding, batch int64) (heeding, loop.Logs, error) {
					return h, h.step(batch), nil
				})))
				_, err := steps.Run(ctx, heeding{counter: &counter{Rate: 1}}, loop.Data[int64](source),
					saves(f, loop.Every(loop.Steps(row.every)), checkpoint.Options{Also: map[string]any{"position": &position}}), row.options)
				close(let)
				synctest.Wait()
				if row.err != "" {
					require.ErrorContains(t, err, row.err)
					_, err = f.Newest(t.Context())
					require.ErrorIs(t, err, checkpoint.ErrNone)
					return
				}
				require.NoError(t, err)
				c, err := f.Newest(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, row.saved, c.Step)
				var at int64
				require.NoError(t, c.Section("position", &at))
				require.Equal(t, row.saved, at)
			})
		})
	}
}

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
		// The disk fails while step failed is made; the step waits until the background knows.
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
			if batch+1 == failed {
				close(closed)
				synctest.Wait()
			}
			return c, c.step(batch), nil
		})))
		result, _, err := run(t.Context(), l, &counter{Rate: 1}, loop.Until(loop.Steps(5000)), saves(f, loop.At(loop.Steps(saved))))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "loop: step 15: a save has failed: checkpoint: ")
		require.EqualValues(t, failed, result.Elapsed.Steps)
		t.Logf("F05: a save of step %d failed in the background while step %d was made: the run ended after that step", saved, failed)
	})
}
