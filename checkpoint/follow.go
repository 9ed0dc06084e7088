package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Follow restores a run's checkpoints as they appear, in order, to evaluate them in another process:
//
//	for at, err := range (checkpoint.Follow{Dir: "run"}).Into(ctx, state) { … }
//
// The loop ends after the last, when the folder marks the run's end.
type Follow struct {
	// Dir may appear later.
	Dir string
	// Folder, like one of [OpenStore], replaces Dir. It stays open.
	Folder *Folder
	// Newest skips all but the newest checkpoint at each look.
	Newest bool
	// Poll is the time between looks, default 10 seconds.
	Poll time.Duration
	// Timeout limits the wait for the next checkpoint; 0: no limit. The error wraps [context.DeadlineExceeded].
	Timeout time.Duration
	// Stop, if not nil, replaces the mark of the run's end. It is called before each look: earlier checkpoints are
	// still restored.
	Stop func(ctx context.Context) (bool, error)
}

// Into restores each checkpoint into the state and yields its position. It ends after an error or with ctx.
func (f Follow) Into(ctx context.Context, state State) iter.Seq2[loop.Elapsed, error] {
	return func(yield func(loop.Elapsed, error) bool) {
		more := true
		err := f.each(ctx, state, func(at loop.Elapsed) bool { more = yield(at, nil); return more })
		if err != nil && more {
			yield(loop.Elapsed{}, fmt.Errorf("checkpoint: follow %s: %w", f.name(), err))
		}
	}
}

func (f Follow) name() string {
	if f.Folder != nil {
		return f.Folder.Dir()
	}
	return f.Dir
}

const defaultPoll = 10 * time.Second

func (f Follow) each(ctx context.Context, state State, yield func(loop.Elapsed) bool) (err error) {
	switch {
	case state == nil:
		return errors.New("no state given")
	case f.Folder == nil && f.Dir == "" || f.Folder != nil && f.Dir != "":
		return errors.New("expected either Dir or Folder")
	case f.Poll < 0 || f.Timeout < 0:
		return fmt.Errorf("option Poll is %s, Timeout %s: expected times that are not negative", f.Poll, f.Timeout)
	}
	dir := f.Dir
	defer func() {
		if dir != "" && f.Folder != nil {
			err = errors.Join(err, f.Folder.Close())
		}
	}()
	last, since := Step(-1), time.Now()
	for {
		if f.Folder == nil {
			if f.Folder, err = Open(dir, Options{ReadOnly: true}); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		over, steps, err := f.look(ctx, last)
		if err != nil {
			return err
		}
		for _, step := range steps {
			at, gone, err := f.restore(ctx, state, step)
			if err != nil {
				return err
			}
			if last = step; !gone && !yield(at) {
				return nil
			}
			since = time.Now()
		}
		if over {
			return nil
		}
		if err := f.wait(ctx, since); err != nil {
			return err
		}
	}
}

func (f Follow) look(ctx context.Context, last Step) (over bool, steps []Step, err error) {
	if f.Stop != nil {
		if over, err = f.Stop(ctx); err != nil {
			return false, nil, fmt.Errorf("check whether the training has ended: %w", err)
		}
	}
	if f.Folder == nil {
		return over, nil, nil
	}
	if f.Stop == nil {
		mark, err := f.Folder.endMark(ctx)
		if err != nil {
			return false, nil, err
		}
		over = mark != ""
	}
	list, err := f.Folder.List(ctx)
	if err != nil {
		return false, nil, err
	}
	for _, i := range list {
		if i.Err == nil && i.Step > last {
			steps = append(steps, i.Step)
		}
	}
	if f.Newest && len(steps) > 1 {
		steps = steps[len(steps)-1:]
	}
	return over, steps, nil
}

func (f Follow) restore(ctx context.Context, state State, step Step) (at loop.Elapsed, gone bool, err error) {
	c, err := f.Folder.Load(ctx, step)
	if err == nil {
		var from *resumption
		if from, err = f.Folder.restore(ctx, state, c, nil, nil); err == nil {
			return from.elapsed, false, nil
		}
	}
	// The run may have removed it.
	list, listErr := f.Folder.List(ctx)
	if listErr == nil && !slices.ContainsFunc(list, func(i Info) bool { return i.Step == step }) {
		f.Folder.Options().Log.Info("checkpoint: removed before it was restored", "folder", f.Folder.Dir(), "step", int64(step))
		return at, true, nil
	}
	return at, false, err
}

func (f Follow) wait(ctx context.Context, since time.Time) error {
	poll := cmp.Or(f.Poll, defaultPoll)
	if f.Timeout > 0 {
		rest := f.Timeout - time.Since(since)
		if rest <= 0 {
			return fmt.Errorf("no checkpoint came in %s: %w", f.Timeout, context.DeadlineExceeded)
		}
		poll = min(poll, rest)
	}
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
