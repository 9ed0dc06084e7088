// Package memstore has stores for tests: one in memory ([Memory]), one with injected failures ([Faulty]).
package memstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/checkpoint"
)

type Memory struct {
	mu      sync.Mutex
	objects map[string][]byte // never changed in place
}

var _ checkpoint.Store = (*Memory)(nil)

func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{objects: maps.Clone(m.objects)}
}

func (m *Memory) Put(ctx context.Context, key string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[string][]byte{}
	}
	m.objects[key] = b.Bytes()
	return nil
}

func (m *Memory) get(ctx context.Context, op, key string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[key]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: key, Err: fs.ErrNotExist}
	}
	return object, nil
}

func (m *Memory) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	object, err := m.get(ctx, "read", key)
	if err != nil {
		return 0, err
	}
	return bytes.NewReader(object).ReadAt(p, offset)
}

func (m *Memory) Size(ctx context.Context, key string) (int64, error) {
	object, err := m.get(ctx, "size", key)
	return int64(len(object)), err
}

func (m *Memory) Keys(ctx context.Context) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects)), nil
}

func (m *Memory) Delete(ctx context.Context, key string) error {
	if _, err := m.get(ctx, "delete", key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

type Op string

const (
	OpPut    Op = "put"
	OpRead   Op = "read"
	OpSize   Op = "size"
	OpKeys   Op = "keys"
	OpDelete Op = "delete"
)

// Call is one call; Key is "" for OpKeys.
type Call struct {
	Op  Op
	Key string
}

// Faulty is a store that can fail. [Memory.Clone] in a hook is what a crash at that call leaves.
type Faulty struct {
	Store checkpoint.Store
	// Before runs before a call, which fails without effect on its error, though Put may have called its function.
	Before func(Call) error
	// After runs after a successful call, which fails after its effect on its error, as when a response is lost.
	After func(Call) error
}

func (f *Faulty) around(c Call, do func() error) error {
	if f.Before != nil {
		if err := f.Before(c); err != nil {
			return err
		}
	}
	err := do()
	if f.After != nil && (err == nil || errors.Is(err, io.EOF)) {
		err = errors.Join(f.After(c), err)
	}
	return err
}

func (f *Faulty) Put(ctx context.Context, key string, write func(io.Writer) error) error {
	called := false
	err := f.around(Call{OpPut, key}, func() error {
		called = true
		return f.Store.Put(ctx, key, write)
	})
	if err != nil && !called { // the connection broke at the first byte
		_ = write(broken{err})
	}
	return err
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func (f *Faulty) ReadAt(ctx context.Context, key string, p []byte, offset int64) (n int, err error) {
	err = f.around(Call{OpRead, key}, func() (err error) {
		n, err = f.Store.ReadAt(ctx, key, p, offset)
		return err
	})
	return n, err
}

func (f *Faulty) Size(ctx context.Context, key string) (n int64, err error) {
	err = f.around(Call{OpSize, key}, func() (err error) {
		n, err = f.Store.Size(ctx, key)
		return err
	})
	return n, err
}

func (f *Faulty) Keys(ctx context.Context) (keys []string, err error) {
	err = f.around(Call{OpKeys, ""}, func() (err error) {
		keys, err = f.Store.Keys(ctx)
		return err
	})
	return keys, err
}

func (f *Faulty) Delete(ctx context.Context, key string) error {
	return f.around(Call{OpDelete, key}, func() error { return f.Store.Delete(ctx, key) })
}
