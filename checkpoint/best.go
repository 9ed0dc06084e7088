package checkpoint

import (
	"context"
	"errors"
	"slices"
)

// Best loads the checkpoint that a retention by metric ([Lowest], [Highest]) puts first, as Best(ctx, Lowest(1,
// "loss_test")). [ErrNone] if no checkpoint has a finite value of the metric.
func (f *Folder) Best(ctx context.Context, by Retention) (*Checkpoint, error) {
	step, err := f.bestStep(ctx, by)
	if err != nil {
		return nil, f.wrap(err, "best by %v", by)
	}
	return f.Load(ctx, step)
}

func (f *Folder) bestStep(ctx context.Context, by Retention) (Step, error) {
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

// rules are those that checkpoints are kept by: Keep, and the best of a run ([Options].Best) unless all are kept.
func (f *Folder) rules() []Retention {
	if best := f.best.Load(); best != nil && len(f.options.Keep) > 0 {
		return append(slices.Clip(f.options.Keep), *best)
	}
	return f.options.Keep
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
