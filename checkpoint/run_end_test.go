package checkpoint_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// The reason for a run's end decides whether it is saved at its end.
func TestEndings(t *testing.T) {
	for _, row := range []struct {
		name string
		task func(cancel func()) error
		want int64 // of the newest checkpoint
	}{
		{"stopped", func(func()) error { return loop.ErrStop }, 10},
		{"cancelled at a border", func(cancel func()) error { cancel(); return nil }, 10},
		{"cancelled inside of a turn", func(cancel func()) error { cancel(); return context.Canceled }, 8},
		{"failed", func(func()) error { return errors.New("no") }, 8},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := loop.New(loop.On[*counter, int64](loop.EachStep, blocks{}),
				loop.On(loop.At(loop.Steps(10)), loop.StepFunc(func(_ context.Context, c *counter, _ int64) (*counter, loop.Logs, error) {
					return c, loop.Logs{}, row.task(cancel)
				})),
			)
			_, _, _ = run(ctx, l, &counter{Rate: 1}, f.Resume(checkpoint.Every(loop.Steps(4))), loop.Until(loop.Steps(50)))
			all := steps(t, f)
			require.EqualValues(t, row.want, all[len(all)-1])
		})
	}
}
