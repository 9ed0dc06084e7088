package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// KeepBest is an option of a loop: at a normal end of the run it puts the best checkpoint of the folder into the state, as
// KeepBest(folder, Lowest(1, "loss_test")). The folder must keep it ([Options].Keep), and [Save] must save into it. Unlike
// [loop.KeepBest] it needs no copy in memory, and it knows the best of all runs that were resumed from one another, because
// theirs are in the folder; the state must be a [Restorer] that changes in place.
//
// [loop.Result].Elapsed stays that of the last turn, and the last step is saved before: a run that goes on goes on from there.
// A run that was cancelled or has failed keeps its last state, as does one without a finite value of the metric.
func KeepBest(folder *Folder, by Retention) loop.Option {
	if folder == nil {
		return loop.Attend("keep best", loop.AtStart, nil) // refused when the run starts
	}
	return loop.Attend("keep best", loop.AtStart, func() loop.Attendant { return &bestBack{folder, by} })
}

type bestBack struct {
	folder *Folder
	by     Retention
}

// Watch finds mistakes before the first step.
func (b *bestBack) Watch(_ context.Context, r loop.Report) error {
	if err := b.by.checkBest(); err != nil {
		return fmt.Errorf("checkpoint: keep best by %v: %w", b.by, err)
	}
	if _, ok := r.State().(Restorer); !ok {
		return fmt.Errorf("checkpoint: keep best: a state of type %T cannot be restored: give it the method Restore of checkpoint.Restorer", r.State())
	}
	keeps := func(k Retention) bool { return k.byMetric && k.entry == b.by.entry && k.sign == b.by.sign }
	if !slices.ContainsFunc(b.folder.options.Keep, keeps) {
		return fmt.Errorf("checkpoint: keep best: the folder %s does not keep it: add %v to Keep in its Options", b.folder.dir, b.by)
	}
	return nil
}

// End comes after that of Save, which stands behind all others.
func (b *bestBack) End(ctx context.Context, e loop.Ending) error {
	normal := e.Err == nil && (e.Reason == loop.DataEnded || e.Reason == loop.UntilReached || e.Reason == loop.Stopped)
	state, ok := e.State().(Restorer)
	if !normal || !ok {
		return nil
	}
	c, err := b.folder.Best(ctx, b.by)
	if errors.Is(err, ErrNone) {
		return nil
	}
	_, err = resume(ctx, b.folder, state, c, err)
	return err
}
