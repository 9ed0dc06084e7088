package runs

import (
	"context"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// SavedStates reads what runs saved by [Save] into a folder, for another process that evaluates it: it is the
// Checkpoints of an outer.Continuous.
type SavedStates[S checkpoint.Restorer] struct{ Folder *checkpoint.Folder }

// Steps lists the checkpoints that are complete.
func (r SavedStates[S]) Steps(ctx context.Context) ([]int64, error) {
	list, err := r.Folder.List(ctx)
	var steps []int64
	for _, i := range list {
		if i.Err == nil {
			steps = append(steps, int64(i.Step))
		}
	}
	return steps, err
}

// Restore puts the checkpoint of a step into a state.
func (r SavedStates[S]) Restore(ctx context.Context, into S, step int64) (S, loop.Elapsed, error) {
	start, err := ResumeAt(ctx, r.Folder, checkpoint.Step(step), into)
	return into, start.Elapsed, err
}
