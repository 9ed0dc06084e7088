package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Save writes a checkpoint and removes those that [Options.Keep] does not keep. After nil or [ErrNotPruned], the step
// survives a power loss. After any other error it does not exist, older checkpoints are unchanged, and the space is
// free again. A full disk is syscall.ENOSPC. The end of ctx and panics of the content's functions are errors.
func (f *Folder) Save(ctx context.Context, step Step, content Content) error {
	if ctx == nil {
		return f.wrap(shield.ErrNoContext, "save step %d", step)
	}
	d, err := newDraft(step, content)
	if err == nil {
		err = f.save(ctx, d, new([]Step))
	} else if content.Sharded() {
		err = errors.Join(err, f.GiveUp(context.WithoutCancel(ctx), step, content.Share, err))
	}
	return f.wrap(err, "save step %d", step)
}

func (f *Folder) save(ctx context.Context, d *draft, another *[]Step) (err error) {
	if saved, begin := f.options.Saved, time.Now(); saved != nil {
		defer func() {
			if fault := shield.Run(func() error { saved(d.manifest.step, time.Since(begin), err); return nil }); fault != nil {
				err = errors.Join(err, fmt.Errorf("option Saved: %w", fault))
			}
		}()
	}
	if d.share.Rank > 0 {
		if !d.cut() {
			return fmt.Errorf("rank %d of %d has no part to save: no tensor is sharded", d.share.Rank, d.share.Of)
		}
		return f.saveShare(ctx, d)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.use(true); err != nil {
		return err
	}
	at, err := f.placeOf(ctx, d)
	if err != nil {
		return err
	}
	d.manifest.time = f.now().UTC()
	reads := f.options.ReadBack || !f.readBack
	w := d.writing(ctx, reads, f.options.Log)
	w.last = func() error { return f.supersede(ctx, another) }
	if err := f.medium.put(ctx, at.String(), w); err != nil {
		return err
	}
	f.readBack = f.readBack || reads
	f.missing(d)
	if err := f.prune(ctx, &at); err != nil {
		return fmt.Errorf("%w: %w", ErrNotPruned, err)
	}
	return nil
}

func (f *Folder) placeOf(ctx context.Context, d *draft) (place, error) {
	if d.cut() {
		return placeIn(d.share.At, d.manifest.step), nil
	}
	if err := f.clean(ctx); err != nil {
		return place{}, err
	}
	return f.free(ctx, d.manifest.step)
}

func (f *Folder) supersede(ctx context.Context, steps *[]Step) error {
	if len(*steps) == 0 {
		return nil
	}
	doomed, err := f.places(ctx, func(p place) bool { return slices.Contains(*steps, p.step) })
	if err == nil {
		err = f.trash(ctx, doomed)
	}
	if err != nil {
		return fmt.Errorf("remove the steps %v, which are newer than the run's first step: %w", *steps, err)
	}
	*steps = nil
	return nil
}

// Warns once about a metric in Keep that no checkpoint has. In a run the loop does.
func (f *Folder) missing(d *draft) {
	for name := range d.manifest.metrics {
		f.settled[name] = true
	}
	for _, r := range f.rules() {
		if r.Best > 0 && !f.settled[r.Metric] && !f.reserved.Load() {
			f.settled[r.Metric] = true
			f.options.Log.Warn("checkpoint: saved without the metric that Keep uses", "step", int64(d.manifest.step),
				"keep", r.String(), "metrics", sortedKeys(d.manifest.metrics))
		}
	}
}

func (f *Folder) free(ctx context.Context, step Step) (place, error) {
	at := place{step, 1}
	taken, err := f.places(ctx, func(p place) bool { return p.step == step })
	if err != nil || len(taken) == 0 {
		return at, err
	}
	replaces := f.options.Overwrite || f.outdated != nil && *f.outdated == step
	for _, p := range taken {
		if replaces {
			break
		}
		switch _, err := f.read(ctx, p, false); {
		case err == nil, errors.Is(err, ErrNewer):
			return at, fmt.Errorf("%s: %w; set Overwrite to replace it", p, existsError{})
		case !isDamaged(err):
			return at, err
		default:
			f.options.Log.Warn("checkpoint: the step exists, but is damaged: the new one is saved next to it", "folder", f.dir, "error", err)
		}
	}
	at.again = taken[len(taken)-1].again + 1
	return at, nil
}

func (d *draft) writing(ctx context.Context, readBack bool, log *slog.Logger) writing {
	w := writing{files: func(create creator, open opener, dir string) ([]byte, error) {
		if err := create(stateName, func(w io.Writer) error { return d.writeState(&patient{ctx, w}) }); err != nil {
			return nil, err
		}
		if d.cut() {
			if err := create(shareName(0), func(w io.Writer) error { return d.writeShare(&patient{ctx, w}) }); err != nil {
				return nil, fmt.Errorf("the parts of rank 0: %w", err)
			}
			if err := d.gather(ctx, open, dir, log); err != nil {
				return nil, err
			}
		}
		d.written.Store(true)
		text, err := d.manifest.encode()
		if err != nil {
			return nil, err
		}
		return []byte(commit(text)), create(manifestName, bytesOf(text))
	}}
	if d.cut() {
		w.begun = tempOf(d.share.At)
	}
	if readBack {
		w.check = func(open opener, dir string) error {
			_, err := readCheckpoint(ctx, open, dir, d.manifest.step, false)
			return err
		}
	}
	return w
}
