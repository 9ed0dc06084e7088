// Package vfs is the part of a file system that checkpoints need: the real one ([OS]) and, for tests, [Mem], [Hook] and
// [Count].
package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/lazo-ml/lazo/internal/regular"
)

// FS is a folder of a file system. Names are relative, with slashes, without "." and ".." elements; "." is the folder.
// Errors are those of packages fs and syscall and contain the name.
type FS interface {
	// Create creates a file for writing. An existing file is fs.ErrExist.
	Create(name string) (File, error)
	// Open opens a regular file for reading. Links are errors.
	Open(name string) (File, error)
	// Rename moves a file or folder. An existing target is fs.ErrExist, but another process's concurrent one may be
	// overwritten.
	Rename(from, to string) error
	Remove(name string) error
	Mkdir(name string) error
	// ReadDir returns the names in a folder, sorted.
	ReadDir(name string) ([]string, error)
	// Stat does not follow links.
	Stat(name string) (Info, error)
	SyncDir(name string) error
	// Lock locks a file, created if necessary, until Close or the process's end, and writes the note into it. If
	// another has the lock, the error is a *[LockedError].
	Lock(name, note string) (io.Closer, error)
	Close() error
}

// File is a created file, with Write, which appends, or an opened one, with ReadAt.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error
	Size() (int64, error)
}

type Info struct {
	// Size is a regular file's bytes, otherwise 0.
	Size int64
	Type fs.FileMode
}

func (i Info) IsDir() bool { return i.Type == fs.ModeDir }

// LockedError: another process, or another user in this one, has the lock.
type LockedError struct {
	Name string
	// Note is the owner's, truncated to 1 kB, empty while the owner writes it. Do not trust it.
	Note string
}

func (e *LockedError) Error() string { return fmt.Sprintf("%s is locked by %q", e.Name, e.Note) }

const noteLimit = 1 << 10

func fail(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func checkName(op, name string) error {
	if !fs.ValidPath(name) {
		return fail(op, name, fs.ErrInvalid)
	}
	return nil
}

func checkChild(op, name string) error {
	if name == "." {
		return fail(op, name, fs.ErrInvalid)
	}
	return checkName(op, name)
}

var (
	errFull      = syscall.ENOTEMPTY
	errNoDir     = syscall.ENOTDIR
	errIsDir     = syscall.EISDIR
	errIrregular = regular.Err
)
