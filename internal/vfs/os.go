package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/internal/regular"
)

const (
	dirMode  = 0o750
	fileMode = 0o640
)

type osFS struct{ root *os.Root }

// OS opens an existing folder. Nothing outside it is accessible, even by links. New folders have mode 0750, new files
// 0640, minus the umask.
func OS(dir string) (FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return osFS{root}, nil
}

// MkdirAll creates a folder and its parents durably.
func MkdirAll(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fail("mkdir", dir, errNoDir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if err := MkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncAndClose(os.Open(parent))
}

func syncAndClose(file *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(syncFolder(file), file.Close())
}

func (o osFS) Close() error { return o.root.Close() }

func (o osFS) Create(name string) (File, error) {
	if err := checkChild("create", name); err != nil {
		return nil, err
	}
	return asFile(o.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode))
}

func (o osFS) Open(name string) (File, error) {
	if err := o.regular(name); err != nil {
		return nil, err
	}
	return asFile(o.root.Open(name))
}

// Opening would wait for a named pipe's writer and follow links.
func (o osFS) regular(name string) error {
	info, err := o.Stat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fail("open", name, errIsDir)
	case info.Type != 0:
		return fail("open", name, errIrregular)
	}
	return nil
}

func (o osFS) Rename(from, to string) error {
	if err := errors.Join(checkChild("rename", from), checkChild("rename", to)); err != nil {
		return err
	}
	if _, err := o.root.Lstat(from); err != nil {
		return err
	}
	// Rename would overwrite a file or an empty folder.
	if _, err := o.root.Lstat(to); err == nil {
		return fail("rename", to, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return o.root.Rename(from, to)
}

func (o osFS) Remove(name string) error {
	if err := checkChild("remove", name); err != nil {
		return err
	}
	return o.root.Remove(name)
}

func (o osFS) Mkdir(name string) error {
	if err := checkChild("mkdir", name); err != nil {
		return err
	}
	return o.root.Mkdir(name, dirMode)
}

func (o osFS) ReadDir(name string) ([]string, error) {
	if err := checkName("readdir", name); err != nil {
		return nil, err
	}
	dir, err := o.root.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, dir.Close())
}

func (o osFS) Stat(name string) (Info, error) {
	if err := checkName("stat", name); err != nil {
		return Info{}, err
	}
	info, err := o.root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	i := Info{Type: info.Mode().Type()}
	if i.Type == 0 {
		i.Size = info.Size()
	}
	return i, nil
}

func (o osFS) SyncDir(name string) error {
	if info, err := o.Stat(name); err != nil {
		return err
	} else if !info.IsDir() {
		return fail("syncdir", name, errNoDir)
	}
	return syncAndClose(o.root.Open(name))
}

func (o osFS) Lock(name, note string) (io.Closer, error) {
	if err := checkChild("lock", name); err != nil {
		return nil, err
	}
	if err := o.regular(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := o.root.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := lock(file, name, note); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil // closing releases the lock; the file stays, because another may have it open
}

// Locked reports whether a process has the lock of this file.
func Locked(path string) (bool, error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	taken, err := tryLockShared(file)
	return taken, errors.Join(err, file.Close())
}

// lookers limits the tries: Locked holds the lock for a moment.
const lookers = 20

func lock(file *os.File, name, note string) error {
	taken, err := TryLock(file)
	for try := 1; taken && try < lookers; try++ {
		time.Sleep(time.Millisecond)
		taken, err = TryLock(file)
	}
	if taken {
		owner := make([]byte, noteLimit)
		n, readErr := file.ReadAt(owner, 0)
		if readErr != nil && readErr != io.EOF {
			return errors.Join(&LockedError{Name: name}, readErr)
		}
		return &LockedError{name, string(owner[:n])}
	} else if err != nil {
		return fail("flock", name, err)
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(note), 0)
	return err
}

// osFile writes to the disk early, in a goroutine that may block: Sync then has little left.
type osFile struct {
	*os.File
	written, begun int64
	handing        sync.WaitGroup
	busy           atomic.Bool
}

const writeBackSize = 8 << 20

func (f *osFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(max(n, 0))
	if err == nil && f.written-f.begun >= writeBackSize && f.busy.CompareAndSwap(false, true) {
		from, length := f.begun, f.written-f.begun
		f.begun = f.written
		f.handing.Go(func() {
			writeBack(f.File, from, length)
			f.busy.Store(false)
		})
	}
	return n, err
}

func (f *osFile) Sync() error {
	f.handing.Wait()
	return f.File.Sync()
}

func (f *osFile) Close() error {
	f.handing.Wait()
	return f.File.Close()
}

func asFile(file *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &osFile{File: file}, nil
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
