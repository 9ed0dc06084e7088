package vfs

import (
	"cmp"
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

// named makes a call with a name alone, unless the hook has an error for it.
func (h *hooked) named(op Op, name string, call func(name string) error) error {
	if err := h.before(Call{op, name}); err != nil {
		return err
	}
	return call(name)
}

// looked is named for calls that give something.
func looked[T any](h *hooked, op Op, name string, call func(name string) (T, error)) (given T, err error) {
	err = h.named(op, name, func(string) error {
		given, err = call(name)
		return err
	})
	return given, err
}

func (h *hooked) file(op Op, name string, call func(name string) (File, error)) (File, error) {
	f, err := looked(h, op, name, call)
	if err != nil {
		return nil, err
	}
	return &hookedFile{f, h, name}, nil
}

func (h *hooked) Create(name string) (File, error) { return h.file(OpCreate, name, h.fs.Create) }
func (h *hooked) Open(name string) (File, error)   { return h.file(OpOpen, name, h.fs.Open) }
func (h *hooked) Remove(name string) error         { return h.named(OpRemove, name, h.fs.Remove) }
func (h *hooked) Mkdir(name string) error          { return h.named(OpMkdir, name, h.fs.Mkdir) }
func (h *hooked) SyncDir(name string) error        { return h.named(OpSyncDir, name, h.fs.SyncDir) }
func (h *hooked) ReadDir(name string) ([]string, error) {
	return looked(h, OpReadDir, name, h.fs.ReadDir)
}
func (h *hooked) Stat(name string) (Info, error) { return looked(h, OpStat, name, h.fs.Stat) }

func (h *hooked) Rename(from, to string) error {
	return h.named(OpRename, from, func(string) error { return h.fs.Rename(from, to) })
}

func (h *hooked) Lock(name, note string) (io.Closer, error) {
	return looked(h, OpLock, name, func(string) (io.Closer, error) { return h.fs.Lock(name, note) })
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
	return looked(f.fs, OpRead, f.name, func(string) (int, error) { return f.File.ReadAt(p, offset) })
}

func (f *hookedFile) Sync() error {
	return f.fs.named(OpSync, f.name, func(string) error { return f.File.Sync() })
}

func (f *hookedFile) Size() (int64, error) {
	return looked(f.fs, OpStat, f.name, func(string) (int64, error) { return f.File.Size() })
}

func (f *hookedFile) Close() error {
	return cmp.Or(f.fs.before(Call{OpClose, f.name}), f.File.Close())
}
