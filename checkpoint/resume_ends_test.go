package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

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
