package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/lazo-ml/lazo/internal/vfs"
)

type disk struct {
	fs   vfs.FS
	lock io.Closer
}

func (d *disk) names(context.Context) ([]string, error) { return d.fs.ReadDir(".") }

func (d *disk) has(_ context.Context, name string) (bool, error) {
	_, err := d.fs.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (d *disk) open(_ context.Context, path string) (file, error) { return d.fs.Open(path) }

func (d *disk) owner() (text string, err error) {
	return readNote(func(path string) (file, error) { return d.fs.Open(path) }, lockName)
}

func (d *disk) close(readable bool) error {
	var err error
	if d.lock != nil {
		err = d.lock.Close()
	}
	if readable { // unread tensors use d.fs; the runtime closes it
		return err
	}
	return errors.Join(err, d.fs.Close())
}

func (d *disk) put(ctx context.Context, name string, w writing) error {
	temp, err := w.begun, error(nil)
	if temp == "" {
		temp = freshName(tempPrefix)
		err = d.fs.Mkdir(temp)
	}
	if err == nil {
		err = d.write(ctx, temp, w)
	}
	if err == nil {
		err = w.last()
	}
	if err != nil {
		return errors.Join(err, d.discard(temp))
	}
	if err := d.publish(temp, name); err != nil {
		return errors.Join(err, d.takeBack(name, temp))
	}
	return nil
}

func (d *disk) write(ctx context.Context, temp string, w writing) error {
	create := func(name string, write func(io.Writer) error) error { return d.create(temp+"/"+name, write) }
	open := func(path string) (file, error) { return d.open(ctx, path) }
	text, err := w.files(create, open, temp)
	if err == nil {
		err = create(commitName, bytesOf(text))
	}
	if err == nil {
		err = d.fs.SyncDir(temp)
	}
	if err != nil {
		return err
	}
	return w.readBack(open, temp)
}

func (d *disk) begin(_ context.Context, temp string) error { return d.fs.Mkdir(temp) }

func (d *disk) giveUp(_ context.Context, _, temp string) error { return d.discard(temp) }

// Rank 0 must see no incomplete rank file.
func (d *disk) share(_ context.Context, _, temp, file string, write func(io.Writer) error) error {
	part := temp + "/" + file + partSuffix
	err := d.create(part, write)
	if err == nil {
		err = d.fs.Rename(part, temp+"/"+file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errGivenUp, err)
	}
	return err
}

const partSuffix = ".part"

func (d *disk) mark(_ context.Context, _, temp, mark, text string) error {
	part := temp + "/" + mark + partSuffix
	err := d.create(part, bytesOf([]byte(text)))
	if err == nil {
		err = d.fs.Rename(part, temp+"/"+mark)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) { // rank 0 may have removed the folder
		return nil
	}
	rank, _ := shareRank(mark)
	if d.fs.Rename(temp+"/"+shareName(rank)+partSuffix, temp+"/"+mark) == nil {
		return nil
	}
	return err
}

// A failed sync is not retried: the kernel may have dropped the pages.
func (d *disk) create(path string, write func(io.Writer) error) error {
	file, err := d.fs.Create(path)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func (d *disk) note(ctx context.Context, name, text string) error {
	if err := d.forget(ctx, name); err != nil {
		return err
	}
	temp := freshName(tempPrefix)
	if err := d.create(temp, bytesOf([]byte(text))); err != nil {
		return errors.Join(err, d.discard(temp))
	}
	if err := d.publish(temp, name); err != nil {
		return errors.Join(err, d.discard(temp))
	}
	return nil
}

func (d *disk) forget(_ context.Context, name string) error {
	err := d.fs.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, d.fs.SyncDir("."))
}

func (d *disk) publish(temp, name string) error {
	if err := d.fs.Rename(temp, name); err != nil {
		return err
	}
	return d.fs.SyncDir(".")
}

func (d *disk) takeBack(name, temp string) error {
	if err := d.fs.Rename(name, temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.fs.SyncDir("."); err != nil { // else a power loss could show half of it
		return err
	}
	return d.discard(temp)
}

// remove renames first: no half removed checkpoint is visible.
func (d *disk) remove(_ context.Context, names []string) error {
	trash := make([]string, len(names))
	for i, name := range names {
		trash[i] = freshName(trashPrefix)
		if err := d.fs.Rename(name, trash[i]); err != nil {
			return err
		}
	}
	if err := d.fs.SyncDir("."); err != nil {
		return err
	}
	for _, name := range trash {
		if err := d.discard(name); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) clean(_ context.Context, removed func(name string)) error {
	names, err := d.fs.ReadDir(".")
	if err != nil {
		return err
	}
	synced := false
	for _, name := range names {
		if !staleForm.MatchString(name) {
			continue
		}
		if !synced { // a power loss could undo a rename
			if err := d.fs.SyncDir("."); err != nil {
				return err
			}
			synced = true
		}
		if err := d.discard(name); err != nil {
			return fmt.Errorf("remove files of an incomplete earlier save: %w", err)
		}
		removed(name)
	}
	return nil
}

func (d *disk) discard(name string) error {
	err := removeAll(d.fs, name)
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
