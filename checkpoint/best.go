package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Best loads the checkpoint that a retention by metric ([Lowest], [Highest]) puts first, as Best(ctx, Lowest(1,
// "loss_test")). [ErrNone] if no checkpoint has a finite value of the metric.
func (f *Folder) Best(ctx context.Context, by Retention) (*Checkpoint, error) {
	step, err := f.best(ctx, by)
	if err != nil {
		return nil, f.wrap(err, "best by %v", by)
	}
	return f.Load(ctx, step)
}

func (f *Folder) best(ctx context.Context, by Retention) (Step, error) {
	if err := by.checkBest(); err != nil {
		return 0, err
	}
	list, err := f.List(ctx)
	if err != nil {
		return 0, err
	}
	list = slices.DeleteFunc(list, func(i Info) bool { return i.Err != nil })
	if i := slices.Index(by.Kept(list), true); i >= 0 {
		return list[i].Step, nil
	}
	return 0, ErrNone
}

// KeepsBest is an error unless the folder keeps the best checkpoint by a metric ([Options].Keep), so that Best finds
// it.
func (f *Folder) KeepsBest(by Retention) error {
	if err := by.checkBest(); err != nil {
		return fmt.Errorf("checkpoint: keep best by %v: %w", by, err)
	}
	keeps := func(k Retention) bool { return k.byMetric && k.entry == by.entry && k.sign == by.sign }
	if !slices.ContainsFunc(f.options.Keep, keeps) {
		return fmt.Errorf("checkpoint: keep best: the folder %s does not keep it: add %v to Keep in its Options", f.dir, by)
	}
	return nil
}

// checkBest tells whether it names one checkpoint, the best by a metric.
func (r Retention) checkBest() error {
	if err := r.check(); err != nil {
		return err
	}
	if !r.byMetric || r.n != 1 {
		return errors.New("expected Lowest(1, …) or Highest(1, …)")
	}
	return nil
}
