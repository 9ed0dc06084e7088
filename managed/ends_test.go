package managed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// A context that ends in the turn of a checkpoint breaks off neither the copy that another watcher makes of the state
// nor the save; one that ends while the run waits for data costs no step, and a source that never comes back costs half
// a second.
func TestR25_cancelledInTheTurnOfACheckpoint(t *testing.T) {
	home := errors.New("home")
	r := plugintest.CPU(t)
	for _, row := range []struct {
		name string
		turn int64 // in which a watcher cancels it
		data int64 // the batch before which the data does
		hang bool  // and does not come
		want int64
	}{
		{name: "the checkpoint's turn", turn: 20, want: 20},
		{name: "another turn", turn: 21, want: 21},
		{name: "the data", data: 25, want: 25},
		{name: "the data, which hangs", data: 25, hang: true, want: 24},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := newState(t, r, managed.WithOptimizer(sgd()))
			step := stepper(t, managed.TrainStep(regression))
			f, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			ctx, cancel := context.WithCancelCause(t.Context())
			position, let := int64(0), make(chan struct{})
			source := func(yield func(data.Batch, error) bool) {
				for b, err := range line(t, 64).Batches(16).From(0) {
					if position+1 == row.data {
						cancel(home)
						if row.hang {
							<-let
						}
					}
					position++
					if !yield(b, err) {
						return
					}
				}
			}
			begin := time.Now()
			_, err = loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, loop.Data[data.Batch](source), loop.Until(loop.Steps(60)),
				loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
					if r.Elapsed.Steps == row.turn {
						cancel(home)
					}
					return nil
				}),
				callbacks.KeepBest("loss"), f.Resume(checkpoint.Every(loop.Steps(20)), checkpoint.Options{Also: map[string]any{"position": &position}}))
			require.ErrorIs(t, err, home)
			require.Equal(t, row.hang, errors.Is(err, loop.ErrSourceLeft))
			require.Less(t, time.Since(begin), 30*time.Second)
			c, err := f.Newest(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, row.want, c.Step)
			require.NoError(t, newState(t, r, managed.WithOptimizer(sgd())).Restore(t.Context(), c))
			var at int64
			require.NoError(t, c.Section("position", &at))
			require.Equal(t, row.want, at)
			close(let)
		})
	}
}
