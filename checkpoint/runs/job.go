package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// Open is [checkpoint.Open] for the processes of a job, that of a state ([loop.Joined]); nil is one process alone. Rank
// 0 opens the folder to write into it, the others read the same folder when it is there. If one cannot open it, none
// can.
func Open(dir string, options checkpoint.Options, job loop.Job) (folder *checkpoint.Folder, err error) {
	writes := job == nil || job.Rank() == 0
	if writes {
		folder, err = checkpoint.Open(dir, options)
	}
	if err := together(job, "open "+dir, err); err != nil {
		return nil, errors.Join(err, closed(folder))
	}
	if !writes {
		options.ReadOnly = true
		folder, err = checkpoint.Open(dir, options)
	}
	if err := together(job, "open "+dir, err); err != nil {
		return nil, errors.Join(err, closed(folder))
	}
	return folder, nil
}

func closed(folder *checkpoint.Folder) error {
	if folder == nil {
		return nil
	}
	return folder.Close()
}

// jobOf is the processes of a state, nil if this one is alone.
func jobOf(state any) loop.Job {
	if joined, ok := state.(loop.Joined); ok {
		if job := joined.Job(); job != nil && job.Size() > 1 {
			return job
		}
	}
	return nil
}

// decided gives the number of rank 0 to all processes; it is not negative. With an error at rank 0, failed is true in
// the others: it is rank 0's to return, and the run tells the others.
func decided(job loop.Job, number int64, err error) (_ int64, failed bool, _ error) {
	if job == nil {
		return number, err != nil, err
	}
	words := []int64{-1, 0}
	if job.Rank() == 0 {
		if words[0] = number; err != nil {
			words[1] = 1
		}
	}
	if agreed := agree(job, "what rank 0 saves or loads", words); agreed != nil {
		return 0, true, errors.Join(err, fmt.Errorf("checkpoint: agreement with the other processes: %w", agreed))
	}
	return words[0], words[1] > 0, err
}

// agree exchanges words; what is for the messages of processes that wait there.
func agree(job loop.Job, what string, words []int64) error {
	if watched, ok := job.(loop.Watched); ok {
		return watched.AgreeOn(what, words)
	}
	return job.Agree(words)
}

// saveLimit is how long the other processes wait for one that saves.
const saveLimit = 10 * time.Minute

// busy tells the other processes, where they ask, that this one is in a save.
func busy(job loop.Job) (done func()) {
	if watched, ok := job.(loop.Watched); ok {
		return watched.Busy("save", saveLimit)
	}
	return func() {}
}

// give makes the fetches that rank 0 makes to save the state, and drops what they give: a value that is cut is fetched
// by all processes together.
func give(ctx context.Context, of any) error {
	state, ok := of.(checkpoint.State)
	if !ok {
		return fmt.Errorf("checkpoint: a state of type %T cannot be saved: give it the method Content of checkpoint.State", of)
	}
	c, err := state.Content(ctx)
	if err != nil {
		return fmt.Errorf("checkpoint: the state: %w", err)
	}
	return c.Drop()
}

// tracked has the content note which of its tensors were written; left drops the others.
func tracked(c checkpoint.Content) (_ checkpoint.Content, left func() error) {
	all := c.Tensors
	written := make(map[string]bool, len(all))
	c.Tensors = slices.Clone(all)
	for i := range c.Tensors {
		if t := &c.Tensors[i]; t.Write != nil {
			write := t.Write
			t.Write = func(w io.Writer) error {
				written[t.Name] = true
				return write(w)
			}
		}
	}
	return c, func() error {
		return checkpoint.Content{Tensors: slices.DeleteFunc(slices.Clone(all), func(t checkpoint.Tensor) bool { return written[t.Name] })}.Drop()
	}
}

// helper is what [Save] starts in the processes but that of rank 0, which decides and writes.
type helper struct{ job loop.Job }

// Watch helps to save if rank 0 saves in this turn.
func (h helper) Watch(ctx context.Context, r loop.Report) error {
	save, failed, err := decided(h.job, 0, nil)
	if err != nil || failed || save == 0 {
		return err
	}
	return give(context.WithoutCancel(ctx), r.State())
}

func (h helper) End(ctx context.Context, e loop.Ending) error {
	if e.Reason == loop.Failed {
		return nil // nor does rank 0 save, and not all processes may have come so far
	}
	return h.Watch(ctx, e.Report)
}

// chosen lets rank 0 choose a checkpoint by find, and gives it to all processes; then each does with it what it is to.
// If one of them cannot, none could. An error of ErrNone is that of all.
func chosen(ctx context.Context, folder *checkpoint.Folder, job loop.Job, find func() (*checkpoint.Checkpoint, error), use func(*checkpoint.Checkpoint) error) error {
	var c *checkpoint.Checkpoint
	var err error
	if job == nil || job.Rank() == 0 {
		c, err = find()
	}
	if job != nil {
		step, none := int64(0), errors.Is(err, checkpoint.ErrNone)
		if none {
			err = nil
		} else if c != nil {
			step = int64(c.Step) + 1
		}
		step, failed, err := decided(job, step, err)
		switch {
		case err != nil:
			return err
		case failed:
			return errors.New("checkpoint: rank 0 could not read the folder; its own error says why")
		case step == 0:
			return checkpoint.ErrNone
		}
		if job.Rank() > 0 {
			if c, err = folder.Load(ctx, checkpoint.Step(step-1)); err != nil {
				err = fmt.Errorf("%w (rank 0 goes on from it: the folder must be the same for all processes)", err)
			}
		}
		if err != nil {
			return together(job, "restore the checkpoint", err)
		}
	}
	if err != nil {
		return err
	}
	return together(job, "restore the checkpoint", use(c))
}

// together tells all processes that one of them could not do its part.
func together(job loop.Job, what string, err error) error {
	if job == nil {
		return err
	}
	words := []int64{0}
	if err != nil {
		words[0] = int64(job.Rank()) + 1
	}
	if agreed := agree(job, "whether all could "+what, words); agreed != nil {
		return errors.Join(err, fmt.Errorf("checkpoint: agreement with the other processes: %w", agreed))
	}
	if err == nil && words[0] > 0 {
		return fmt.Errorf("checkpoint: rank %d could not %s; its own error says why", words[0]-1, what)
	}
	return err
}
