package checkpoint

import (
	"context"
	"errors"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

func (s *saving) bestBack() loop.Option {
	return loop.Callback{Name: "keep best", When: loop.Never, Changes: true, Start: func(loop.Beginning) (loop.Attendant, error) { return &bestBack{s.folder, s.Best, s.Mode, s.job}, nil }}
}

type bestBack struct {
	folder *Folder
	metric string
	mode   loop.Mode
	job    loop.Job
}

func (b *bestBack) Watch(context.Context, loop.Report) error { return nil }

// End runs after the End of the saves.
func (b *bestBack) End(ctx context.Context, e loop.Ending) error {
	state, ok := abilities.StateAs[State](e)
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
