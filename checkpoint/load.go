package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Newest loads and verifies the checkpoint with the highest step. If it is damaged or cannot be read, Newest logs this,
// adds it to PassedOver and tries the one before. If none can be loaded, the error has all causes ([*DamagedError]);
// only an empty folder is [ErrNone]. After [ErrNewer] it tries no older one.
func (f *Folder) Newest(ctx context.Context) (*Checkpoint, error) {
	c, err := f.load(ctx, func(place) bool { return true }, ErrNone)
	return c, f.wrap(err, "load the newest")
}

// Load loads and verifies a step's checkpoint.
func (f *Folder) Load(ctx context.Context, step Step) (*Checkpoint, error) {
	c, err := f.load(ctx, func(p place) bool { return p.step == step }, errNoStep)
	return c, f.wrap(err, "load step %d", step)
}

// Verify checks a step's checkpoint completely, without keeping it in memory.
func (f *Folder) Verify(ctx context.Context, step Step) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrap(f.verify(ctx, step), "verify step %d", step)
}

func (f *Folder) verify(ctx context.Context, step Step) error {
	if err := f.use(false); err != nil {
		return err
	}
	places, err := f.places(ctx, func(p place) bool { return p.step == step })
	if err != nil {
		return err
	}
	if len(places) == 0 {
		return errNoStep
	}
	_, err = f.read(ctx, places[len(places)-1], false)
	return err
}

// Another process may change the list.
const turns = 100

func (f *Folder) load(ctx context.Context, want func(place) bool, none error) (*Checkpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.use(false); err != nil {
		return nil, err
	}
	for turn := 1; ; turn++ {
		places, err := f.places(ctx, want)
		if err != nil {
			return nil, err
		}
		if len(places) == 0 {
			return nil, none
		}
		c, gone, err := f.first(ctx, places)
		if err == nil || !gone || turn == turns {
			return c, err
		}
	}
}

func (f *Folder) first(ctx context.Context, places []place) (c *Checkpoint, gone bool, err error) {
	var failed []error
	for _, p := range slices.Backward(places) {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		c, err := f.read(ctx, p, true)
		if err == nil && !f.options.LeaveSharded {
			err = c.gathered()
		}
		if err == nil {
			c.PassedOver = failed
			return c, false, nil
		}
		if ctx.Err() != nil || errors.Is(err, ErrNewer) {
			return nil, false, err
		}
		if f.options.ReadOnly {
			if there, err := f.medium.has(ctx, p.String()); err == nil && !there {
				return nil, true, fmt.Errorf("%s was removed while it was read", p)
			}
		}
		failed = append(failed, err)
		f.options.Log.Warn("checkpoint: skipped", "folder", f.dir, "checkpoint", p.String(), "error", err)
	}
	return nil, false, fmt.Errorf("%d found, none can be loaded: %w", len(failed), errors.Join(failed...))
}

func (f *Folder) read(ctx context.Context, at place, keep bool) (*Checkpoint, error) {
	return readCheckpoint(ctx, f.opener(ctx), at.String(), at.step, keep)
}

func readCheckpoint(ctx context.Context, open opener, dir string, step Step, keep bool) (*Checkpoint, error) {
	m, err := readManifest(open, dir, step)
	if err != nil {
		return nil, err
	}
	path := dir + "/" + stateName
	file, err := openFile(open, path)
	if err != nil {
		return nil, err
	}
	tensors, err := readState(ctx, file, path, m, keep)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if m.format == shardedFormat {
		cut, err := readShares(ctx, open, dir, m, keep)
		if err != nil {
			return nil, err
		}
		tensors = inOrder(append(tensors, cut...))
	}
	return &Checkpoint{Info: m.info(), Tensors: tensors, sections: m.sections}, nil
}
