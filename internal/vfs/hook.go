package vfs

import (
	"cmp"
	"io"
	"path"
	"sync/atomic"
)

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

func (o Op) Changes() bool {
	switch o {
	case OpOpen, OpReadDir, OpStat, OpRead:
		return false
	}
	return true
}

type Call struct {
	Op Op
	// Name is the file, or a rename's old name.
	Name string
}

// Hook calls before ahead of each call of fs; its error replaces the call. But a failed write writes the first half of
// its bytes, as on a full disk, and a failed close closes.
func Hook(fs FS, before func(Call) error) FS { return &hooked{fs, before} }

type Rule struct {
	// Op "" means all.
	Op Op
	// Name is a pattern of path.Match; "" means all.
	Name string
	// N is the first matching call that fails, from 1.
	N int64
	// On makes later ones fail too.
	On  bool
	Err error
}

// Fail returns fs with failing calls.
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

func (h *hooked) named(op Op, name string, call func(name string) error) error {
	if err := h.before(Call{op, name}); err != nil {
		return err
	}
	return call(name)
}

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
