package checkpoint

import (
	"context"
	"errors"
	"fmt"
)

// Prune removes checkpoints that [Options.Keep] does not keep, as each Save. It first reads checkpoints, the newest
// first, until one is good; this and all newer ones stay. It never removes damaged ones.
func (f *Folder) Prune(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.use(true)
	if err == nil {
		err = f.prune(ctx, nil)
	}
	return f.wrap(err, "prune")
}

func (f *Folder) prune(ctx context.Context, saved *place) error {
	if len(f.options.Keep) == 0 && !f.options.Overwrite {
		return nil
	}
	entries, err := f.scan(ctx)
	if err != nil {
		return err
	}
	good, err := complete(entries)
	if err != nil || len(good) == 0 {
		return err
	}
	list := make([]Info, len(good))
	for i, s := range good {
		list[i] = s.newest.info()
	}
	keep := kept(f.rules(), list)
	right := func(i int) (bool, error) {
		if saved != nil && good[i].newest.place == *saved {
			return true, nil
		}
		return f.right(ctx, good[i].newest.place)
	}
	keep[len(keep)-1] = true
	if saved != nil {
		for i, s := range good {
			keep[i] = keep[i] || s.newest.place == *saved
		}
	} else if err := protect(keep, right); err != nil {
		return err
	}
	var doomed []place
	for i, s := range good {
		if !keep[i] {
			doomed = append(doomed, append(s.replaced, s.newest.place)...)
		} else if len(s.replaced) > 0 {
			if ok, err := right(i); err != nil {
				return err
			} else if ok {
				doomed = append(doomed, s.replaced...)
			}
		}
	}
	return f.trash(ctx, doomed)
}

type saves struct {
	newest   entry
	replaced []place
}

func complete(entries []entry) ([]saves, error) {
	var good []saves
	for _, e := range entries {
		switch last := len(good) - 1; {
		case isDamaged(e.err), errors.Is(e.err, ErrNewer):
		case e.err != nil: // it may be the best one
			return nil, fmt.Errorf("%s: %w", e.place, e.err)
		case last >= 0 && good[last].newest.step == e.step:
			good[last].replaced = append(good[last].replaced, good[last].newest.place)
			good[last].newest = e
		default:
			good = append(good, saves{newest: e})
		}
	}
	return good, nil
}

func (f *Folder) right(ctx context.Context, at place) (bool, error) {
	_, err := f.read(ctx, at, false)
	if isDamaged(err) {
		f.options.Log.Warn("checkpoint: damaged, not removed", "folder", f.dir, "error", err)
		return false, nil
	}
	return err == nil, err
}

// The newest checkpoints down to the first good one stay.
func protect(keep []bool, right func(int) (bool, error)) error {
	for i := len(keep) - 1; i >= 0; i-- {
		keep[i] = true
		if ok, err := right(i); ok || err != nil {
			return err
		}
	}
	return errors.New("no checkpoint is intact, so none is removed")
}

func (f *Folder) trash(ctx context.Context, list []place) error {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.String()
	}
	return f.medium.remove(ctx, names)
}
