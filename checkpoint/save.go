package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// Save writes a checkpoint and makes it durable: when it returns nil, or [ErrNotPruned], the step survives a loss of
// power. Then it removes what [Options.Keep] does not keep. After any other error the step is not there, and all older
// checkpoints are as they were; a full disk is syscall.ENOSPC by errors.Is, and the space is free again.
//
// A ctx that ends is an error like any other, until the checkpoint is complete. A panic of the content's functions is
// one as well.
func (f *Folder) Save(ctx context.Context, step Step, content Content) error {
	d, err := newDraft(step, content)
	if err == nil {
		err = f.save(ctx, d)
	}
	return f.wrap(err, "save step %d", step)
}

func (f *Folder) wrap(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("checkpoint: %s in %s: %w", fmt.Sprintf(doing, args...), f.dir, err)
}

func (f *Folder) save(ctx context.Context, d *draft) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.use(true); err != nil {
		return err
	}
	if err := f.clean(); err != nil {
		return err
	}
	at, err := f.free(ctx, d.manifest.step)
	if err != nil {
		return err
	}
	d.manifest.time = f.now().UTC()
	temp := freshName(tempPrefix)
	if err := f.write(ctx, temp, d); err != nil {
		return errors.Join(err, f.discard(temp))
	}
	if err := f.publish(temp, at); err != nil {
		return errors.Join(err, f.takeBack(at, temp))
	}
	f.missing(d)
	if err := f.prune(ctx, &at); err != nil {
		return fmt.Errorf("%w: %w", ErrNotPruned, err)
	}
	return nil
}

// missing warns of metrics that Keep goes by and that the checkpoint does not have: maybe a typing error.
func (f *Folder) missing(d *draft) {
	for _, r := range f.options.Keep {
		if _, ok := d.manifest.metrics[r.entry]; r.byMetric && !ok {
			f.log.Warn("checkpoint: a checkpoint without the metric that Keep goes by", "step", int64(d.manifest.step),
				"keep", r.String(), "metrics", sortedKeys(d.manifest.metrics))
		}
	}
}

// free is where a step can be saved.
func (f *Folder) free(ctx context.Context, step Step) (place, error) {
	at := place{step, 1}
	taken, err := f.places(func(p place) bool { return p.step == step })
	if err != nil || len(taken) == 0 {
		return at, err
	}
	for _, p := range taken {
		if f.options.Overwrite {
			break
		}
		switch _, err := f.read(ctx, p, false); {
		case err == nil, errors.Is(err, ErrNewer):
			return at, fmt.Errorf("%s: %w; set Overwrite to replace it", p, ErrExists)
		case !isDamaged(err):
			return at, err
		default:
			f.log.Warn("checkpoint: the step is there, but damaged: saved beside it", "folder", f.dir, "error", err)
		}
	}
	at.again = taken[len(taken)-1].again + 1
	return at, nil
}

func isDamaged(err error) bool {
	var d *DamagedError
	return errors.As(err, &d)
}

// write makes the whole checkpoint under a temporary name, durable and read back.
func (f *Folder) write(ctx context.Context, temp string, d *draft) error {
	if err := f.fs.Mkdir(temp); err != nil {
		return err
	}
	err := f.create(temp+"/"+stateName, func(w io.Writer) error { return d.writeState(&patient{ctx, w}) })
	if err != nil {
		return err
	}
	text, err := d.manifest.encode()
	if err != nil {
		return err
	}
	if err := f.create(temp+"/"+manifestName, writing(text)); err != nil {
		return err
	}
	if err := f.create(temp+"/"+commitName, writing([]byte(commit(text)))); err != nil {
		return err
	}
	if err := f.fs.SyncDir(temp); err != nil {
		return err
	}
	if f.options.NoReadBack {
		return nil
	}
	if _, err := readCheckpoint(ctx, f.fs, temp, d.manifest.step, false); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return nil
}

func writing(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// create writes a file and makes it durable. A file whose sync failed is lost: the kernel may have dropped the pages, and
// say at the next sync that all is well. So nothing is tried twice.
func (f *Folder) create(path string, write func(io.Writer) error) error {
	file, err := f.fs.Create(path)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (f *Folder) publish(temp string, at place) error {
	if err := f.fs.Rename(temp, at.String()); err != nil {
		return err
	}
	return f.fs.SyncDir(".")
}

// takeBack undoes a publish that failed, so that what Save calls an error is not there.
func (f *Folder) takeBack(at place, temp string) error {
	if err := f.fs.Rename(at.String(), temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.fs.SyncDir("."); err != nil { // else a loss of power could show a half removed checkpoint
		return err
	}
	return f.discard(temp)
}

// discard removes a folder of ours with all that is in it; one that is not there is no error.
func (f *Folder) discard(name string) error {
	err := removeAll(f.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func removeAll(fsys vfs.FS, name string) error {
	info, err := fsys.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := fsys.ReadDir(name)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := removeAll(fsys, name+"/"+n); err != nil {
				return err
			}
		}
	}
	return fsys.Remove(name)
}
