package checkpoint

import (
	"context"
	"errors"

	"github.com/lazo-ml/lazo/loop"
)

func (s *saving) bestBack() loop.Option {
	return loop.Change{Name: "keep best", When: loop.Never, Start: func(loop.Beginning) (loop.Changer, error) { return &bestBack{s.folder, s.Best, s.Mode, s.job}, nil }}
}

type bestBack struct {
	folder *Folder
	metric string
	mode   loop.Mode
	job    loop.Job
}

// Change does nothing: the best is known at the end.
func (b *bestBack) Change(context.Context, loop.Report, loop.State) error { return nil }

// End runs after the End of the saves.
func (b *bestBack) End(ctx context.Context, e loop.Ending, s loop.State) error {
	state, ok := loop.StateAs[State](s)
	if !e.Normal() || !ok {
		return nil
	}
	find := func() (*Checkpoint, error) { return b.folder.Best(ctx, b.metric, b.mode) }
	err := chosen(ctx, b.folder, b.job, find, func(c *Checkpoint) error {
		_, err := b.folder.restore(ctx, state, c, nil, nil)
		return err
	})
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}
