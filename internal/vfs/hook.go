package vfs

import (
	"io"
	"path"
	"sync/atomic"
)

// Op is a kind of call.
type Op string

const (
	OpCreate  Op = "create"
	OpOpen    Op = "open"
	OpRename  Op = "rename"
	OpRemove  Op = "remove"
	OpMkdir   Op = "mkdir"
	OpReadDir Op = "readdir"
	OpStat    Op = "stat"
	OpSyncDir Op = "syncdir"
	OpLock    Op = "lock"
	OpWrite   Op = "write"
	OpRead    Op = "read"
	OpSync    Op = "sync"
	OpClose   Op = "close"
)

// Changes tells whether a call of this kind can change what is on the disk, or which of that is durable.
func (o Op) Changes() bool {
	switch o {
	case OpOpen, OpReadDir, OpStat, OpRead:
		return false
	}
	return true
}

// Call is one call of a file system or of a file of it.
type Call struct {
	Op Op
	// Name is the file's, or the one to be renamed.
	Name string
}

// Hook is fs with a look at each call before it is made. An error of the hook is what the call returns, and the call is
// not made; but a write that fails leaves the first half of its bytes behind, as a full disk does, and a close that
// fails closes.
func Hook(fs FS, before func(Call) error) FS { return &hooked{fs, before} }

// Rule says which calls fail.
type Rule struct {
	// Op is the kind of call; "" is every kind.
	Op Op
	// Name is a pattern of path.Match for the name; "" is every name.
	Name string
	// N is the first call that fails, counted from 1, of those that fit.
	N int64
	// On lets all later ones fail too.
	On  bool
	Err error
}

// Fail is fs where the calls that a rule names fail.
func Fail(fs FS, rules ...Rule) FS {
	counts := make([]atomic.Int64, len(rules))
	return Hook(fs, func(c Call) error {
		for i, r := range rules {
			if !r.fits(c) {
				continue
			}
			if n := counts[i].Add(1); n == r.N || r.On && n > r.N {
				return fail(string(c.Op), c.Name, r.Err)
			}
		}
		return nil
	})
}

func (r Rule) fits(c Call) bool {
	if r.Op != "" && r.Op != c.Op {
		return false
	}
	if r.Name == "" {
		return true
	}
	ok, _ := path.Match(r.Name, c.Name)
	return ok
}

type hooked struct {
	fs     FS
	before func(Call) error
}

func (h *hooked) Create(name string) (File, error) {
	if err := h.before(Call{OpCreate, name}); err != nil {
		return nil, err
	}
	return h.file(name)(h.fs.Create(name))
}

func (h *hooked) Open(name string) (File, error) {
	if err := h.before(Call{OpOpen, name}); err != nil {
		return nil, err
	}
	return h.file(name)(h.fs.Open(name))
}

func (h *hooked) file(name string) func(File, error) (File, error) {
	return func(f File, err error) (File, error) {
		if err != nil {
			return nil, err
		}
		return &hookedFile{f, h, name}, nil
	}
}

func (h *hooked) Rename(from, to string) error {
	if err := h.before(Call{OpRename, from}); err != nil {
		return err
	}
	return h.fs.Rename(from, to)
}

func (h *hooked) Remove(name string) error {
	if err := h.before(Call{OpRemove, name}); err != nil {
		return err
	}
	return h.fs.Remove(name)
}

func (h *hooked) Mkdir(name string) error {
	if err := h.before(Call{OpMkdir, name}); err != nil {
		return err
	}
	return h.fs.Mkdir(name)
}

func (h *hooked) ReadDir(name string) ([]string, error) {
	if err := h.before(Call{OpReadDir, name}); err != nil {
		return nil, err
	}
	return h.fs.ReadDir(name)
}

func (h *hooked) Stat(name string) (Info, error) {
	if err := h.before(Call{OpStat, name}); err != nil {
		return Info{}, err
	}
	return h.fs.Stat(name)
}

func (h *hooked) SyncDir(name string) error {
	if err := h.before(Call{OpSyncDir, name}); err != nil {
		return err
	}
	return h.fs.SyncDir(name)
}

func (h *hooked) Lock(name, note string) (io.Closer, error) {
	if err := h.before(Call{OpLock, name}); err != nil {
		return nil, err
	}
	return h.fs.Lock(name, note)
}

func (h *hooked) Close() error { return h.fs.Close() }

type hookedFile struct {
	File
	fs   *hooked
	name string
}

func (f *hookedFile) Write(p []byte) (int, error) {
	if err := f.fs.before(Call{OpWrite, f.name}); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *hookedFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.fs.before(Call{OpRead, f.name}); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

func (f *hookedFile) Sync() error {
	if err := f.fs.before(Call{OpSync, f.name}); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *hookedFile) Size() (int64, error) {
	if err := f.fs.before(Call{OpStat, f.name}); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *hookedFile) Close() error {
	err := f.fs.before(Call{OpClose, f.name})
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	return err
}
