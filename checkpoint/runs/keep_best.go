package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// KeepBest is an option of a loop: at a normal end of the run it puts the best checkpoint of the folder into the state,
// as KeepBest(folder, Lowest(1, "loss_test")). The folder must keep it ([checkpoint.Options].Keep), and [Save] must
// save into it. Unlike [callbacks.KeepBest] it needs no copy in memory, and it knows the best of all runs that were
// resumed from one another, because theirs are in the folder; the state must be a [checkpoint.Restorer] that changes in
// place.
//
// [loop.Result].Elapsed stays that of the last turn, and the last step is saved before: a run that goes on goes on from
// there. A run that was cancelled or has failed keeps its last state, as does one without a finite value of the metric.
func KeepBest(folder *checkpoint.Folder, by checkpoint.Retention) loop.Change {
	c := loop.Change{Name: "keep best", When: loop.Never, Start: func(from loop.Beginning) (loop.Changer, error) { return startBest(folder, by, from) }}
	if folder == nil {
		c.Err = errNoFolder
	} else if by.Metric() != "" {
		mode := loop.Lowest
		if by.MoreIsBetter() {
			mode = loop.Highest
		}
		c.Err = mode.Against(by.Metric())
	}
	return c
}

// startBest finds mistakes before the first step.
func startBest(folder *checkpoint.Folder, by checkpoint.Retention, from loop.Beginning) (*bestBack, error) {
	if err := folder.KeepsBest(by); err != nil {
		return nil, err
	}
	if _, ok := loop.StateAs[checkpoint.Restorer](from); !ok && from.State() != nil {
		return nil, fmt.Errorf("checkpoint: keep best: a state of type %T cannot be restored: give it the method Restore of checkpoint.Restorer", from.State())
	}
	return &bestBack{folder, by, from.Job}, nil
}

type bestBack struct {
	folder *checkpoint.Folder
	by     checkpoint.Retention
	job    loop.Job // of the run, nil where this process is alone
}

// Change does nothing: the best is known at the end.
func (b *bestBack) Change(context.Context, loop.Report, loop.State) error { return nil }

// End puts the best state back. It comes after that of Save, which stands behind all others.
func (b *bestBack) End(ctx context.Context, e loop.Ending, s loop.State) error {
	state, ok := loop.StateAs[checkpoint.Restorer](s)
	if !e.Normal() || !ok {
		return nil
	}
	err := chosen(ctx, b.folder, b.job, func() (*checkpoint.Checkpoint, error) { return b.folder.Best(ctx, b.by) },
		func(c *checkpoint.Checkpoint) error {
			_, err := resume(ctx, b.folder, state, c)
			return err
		})
	if errors.Is(err, checkpoint.ErrNone) {
		return nil
	}
	return err
}
