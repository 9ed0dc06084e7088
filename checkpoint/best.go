package checkpoint

import (
	"context"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Best loads the checkpoint with the best finite value of a metric ([Content.Metrics]), or returns [ErrNone]. The zero
// [loop.Mode] decides by the metric's name.
func (f *Folder) Best(ctx context.Context, metric string, mode loop.Mode) (*Checkpoint, error) {
	by := Retention{Best: 1, Metric: metric, Mode: mode}
	step, err := f.bestStep(ctx, by)
	if err != nil {
		return nil, f.wrap(err, "best by %v", by)
	}
	return f.Load(ctx, step)
}

func (f *Folder) bestStep(ctx context.Context, by Retention) (Step, error) {
	if err := by.check(); err != nil {
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

func (f *Folder) rules() []Retention {
	if best := f.best.Load(); best != nil && len(f.options.Keep) > 0 {
		return append(slices.Clip(f.options.Keep), *best)
	}
	return f.options.Keep
}
