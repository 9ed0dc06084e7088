package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

var errHome = errors.New("home")

// heeding is a state that gives nothing to a context that has ended, as a managed.State does.
type heeding struct {
	*counter
	writing func() // called when a tensor is written, if there is one
}

func (h heeding) Content(ctx context.Context) (checkpoint.Content, error) {
	if err := context.Cause(ctx); err != nil {
		return checkpoint.Content{}, err
	}
	c, err := h.counter.Content(ctx)
	data := c.Tensors[0].Data
	c.Tensors[0].Data, c.Tensors[0].Write = nil, func(w io.Writer) error {
		if h.writing != nil {
			h.writing()
		}
		_, err := w.Write(data)
		return err
	}
	return c, err
}

func heedingLoop() loop.Loop[heeding, int64] {
	return loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, h heeding, batch int64) (heeding, loop.Logs, error) {
		return h, h.step(batch), nil
	})))
}

// A run that is cancelled in the turn of a checkpoint has that checkpoint, wherever in the turn it was.
func TestR25_cancelledInTheTurnOfACheckpoint(t *testing.T) {
	for _, where := range []string{"a watcher before", "the copy", "at the end"} {
		t.Run(where, func(t *testing.T) {
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1, Best: 1, Metric: "loss"}}})
			ctx, cancel := context.WithCancelCause(t.Context())
			state := heeding{counter: &counter{Rate: 1}}
			watch := loop.Never
			switch where {
			case "a watcher before":
				watch = loop.At(loop.Steps(50))
			case "at the end": // where nothing else is due
				watch = loop.At(loop.Steps(49))
			}
			saves := 0
			if where == "the copy" {
				state.writing = func() {
					if saves++; saves > 3 {
						cancel(errHome)
					}
				}
			}
			result, _, err := run(ctx, heedingLoop(), state, loop.Until(loop.Steps(200)),
				f.Resume(checkpoint.Every(loop.Steps(50))), loop.Watch(watch, func(context.Context, loop.Report) error { cancel(errHome); return nil }))
			require.EqualError(t, err, fmt.Sprintf("loop: step %d: cancelled: home", result.Elapsed.Steps))
			require.Equal(t, loop.Cancelled, result.Reason)
			c, err := f.Newest(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, result.Elapsed.Steps, c.Step)
		})
	}
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
