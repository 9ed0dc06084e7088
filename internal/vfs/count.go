package vfs

import (
	"io"
	"sync"
	"sync/atomic"
)

type Counted struct {
	FS
	open atomic.Int64
}

func Count(fs FS) *Counted { return &Counted{FS: fs} }

func (c *Counted) Handles() int64 { return c.open.Load() }

func (c *Counted) Create(name string) (File, error) { return c.file(c.FS.Create(name)) }
func (c *Counted) Open(name string) (File, error)   { return c.file(c.FS.Open(name)) }

func (c *Counted) file(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &countedFile{f, c.handle(f)}, nil
}

func (c *Counted) Lock(name, note string) (io.Closer, error) {
	l, err := c.FS.Lock(name, note)
	if err != nil {
		return nil, err
	}
	return c.handle(l), nil
}

func (c *Counted) handle(closer io.Closer) *handle {
	c.open.Add(1)
	return &handle{closer: closer, open: &c.open}
}

type countedFile struct {
	File
	handle *handle
}

func (f *countedFile) Close() error { return f.handle.Close() }

type handle struct {
	closer io.Closer
	open   *atomic.Int64
	once   sync.Once
}

func (h *handle) Close() error {
	h.once.Do(func() { h.open.Add(-1) })
	return h.closer.Close()
}
