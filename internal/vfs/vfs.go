// Package vfs is the part of a file system that checkpoints need. It is an interface so that tests can lose power, run
// out of space or fail at any call: beside the real one ([OS]) there are one in memory that can crash ([Mem]), one that
// fails by rules ([Fail], [Hook]) and one that counts what is open ([Count]).
package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/lazo-ml/lazo/internal/regular"
)

// FS is one folder of a file system. Names are relative to it, with slashes, without "." and ".." in them; "." is the
// folder itself. Errors are those of package fs and syscall, with the name in them.
type FS interface {
	// Create makes a new file to be written; one that is there already is an error (fs.ErrExist).
	Create(name string) (File, error)
	// Open opens a regular file to be read; anything else, a symbolic link for one, is an error.
	Open(name string) (File, error)
	// Rename moves a file or a folder to a name that must be free (fs.ErrExist). Another process that takes the name in
	// the same moment may lose what it made.
	Rename(from, to string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	Mkdir(name string) error
	// ReadDir gives the names in a folder, sorted.
	ReadDir(name string) ([]string, error)
	// Stat tells about name itself, not about what a link there points to.
	Stat(name string) (Info, error)
	// SyncDir makes the names in a folder durable: after it, new, renamed and removed ones survive a loss of power.
	SyncDir(name string) error
	// Lock takes the lock of a file, which is made if it is not there, and writes the note into it. The error is a
	// *[LockedError] if the lock is taken. It ends with Close, or with the process.
	Lock(name, note string) (io.Closer, error)
	Close() error
}

// File is an open file: a new one takes Write, at the end, an opened one ReadAt.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	// Sync makes the content durable, but not the name: see [FS.SyncDir].
	Sync() error
	Size() (int64, error)
}

// Info describes the file or folder of a name.
type Info struct {
	// Size is the length of a regular file in bytes, else 0.
	Size int64
	// Type is 0 for a regular file, fs.ModeDir for a folder.
	Type fs.FileMode
}

// IsDir tells whether it is a folder.
func (i Info) IsDir() bool { return i.Type == fs.ModeDir }

// LockedError: another process, or another user of this one, has the lock.
type LockedError struct {
	Name string
	// Note is what the owner wrote, cut to 1 kB. It is empty for a moment while the owner writes it, and comes from a
	// file: it may be anything.
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

// checkChild is for what cannot be done to the folder itself.
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
