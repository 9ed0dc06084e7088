package runs

import (
	"context"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// SavedStates is a folder as the place where the loops of package train keep states, see train.Checkpoints. What [Save]
// saves can be evaluated so by another process.
type SavedStates[S interface {
	checkpoint.State
	checkpoint.Restorer
}] struct{ Folder *checkpoint.Folder }

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

// Save saves a state without a history, and waits for the disk.
func (r SavedStates[S]) Save(ctx context.Context, state S, at loop.Elapsed) error {
	content, err := (&saving{}).content(ctx, loop.WithState(loop.Report{Elapsed: at}, &state), nil)
	if err != nil {
		return err
	}
	return r.Folder.Save(ctx, checkpoint.Step(at.Steps), content)
}
