package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Common returns the newest step that this folder and all others have undamaged, or [ErrNone]. It reads checkpoints
// fully. Processes with separate folders resume from it ([Options].At): open the others' ReadOnly; newer steps need
// [Options].Overwrite.
func (f *Folder) Common(ctx context.Context, others ...*Folder) (Step, error) {
	folders := slices.Concat([]*Folder{f}, others)
	var steps []Step
	for i, f := range folders {
		list, err := f.List(ctx)
		if err != nil {
			return 0, err
		}
		has := func(step Step) bool {
			return slices.ContainsFunc(list, func(info Info) bool { return info.Step == step && info.Err == nil })
		}
		if i == 0 {
			for _, info := range list {
				steps = append(steps, info.Step)
			}
		}
		steps = slices.DeleteFunc(steps, func(step Step) bool { return !has(step) })
	}
	for _, step := range slices.Backward(steps) {
		switch err := verifyAll(ctx, step, folders); {
		case err == nil:
			return step, nil
		case !isDamaged(err) && !errors.Is(err, errNoStep):
			return 0, err
		default:
			folders[0].options.Log.Warn("checkpoint: skipped, it is not complete in all folders", "step", int64(step), "error", err)
		}
	}
	return 0, fmt.Errorf("checkpoint: a step that %d folders have in common: %w", len(folders), ErrNone)
}

func verifyAll(ctx context.Context, step Step, folders []*Folder) error {
	for _, f := range folders {
		if err := f.Verify(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
