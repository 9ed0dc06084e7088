package dist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/internal/joined"
)

// Store keeps small values that a job's processes exchange, like the addresses of their devices. A key is any non-empty
// bytes, put once; it lives as long as the job. Methods may be called concurrently. Keys of different jobs and starts
// must be separate.
type Store interface {
	// Put sets a key's value, of up to some megabytes. It returns [ErrKeyExists] if the key has one.
	Put(ctx context.Context, key string, value []byte) error
	// Get waits until the key has a value. If ctx ends, it returns ctx's error.
	Get(ctx context.Context, key string) ([]byte, error)
	// TryGet does not wait. It may return [ErrNoKey].
	TryGet(ctx context.Context, key string) ([]byte, error)
}

// Errors of a [Store].
var (
	ErrKeyExists = joined.ErrKeyExists
	ErrNoKey     = joined.ErrNoKey
)

const mostValue = 64 << 20

var _ Store = (*Job)(nil)

// Put sets a key's value at rank 0, of up to 64 MiB ([Store]). Calls that wait when this rank leaves ([Job.Close])
// return an error.
func (j *Job) Put(ctx context.Context, key string, value []byte) error {
	if len(value) > mostValue {
		return fmt.Errorf("dist: Put %q: a value of %d bytes, expected at most %d", key, len(value), mostValue)
	}
	_, err := j.ask(ctx, "Put", message{Kind: kindPut, Key: []byte(key), Data: slices.Clone(value)})
	return err
}

// Get waits until the key has a value.
func (j *Job) Get(ctx context.Context, key string) ([]byte, error) {
	return j.ask(ctx, "Get", message{Kind: kindGet, Key: []byte(key)})
}

// TryGet does not wait.
func (j *Job) TryGet(ctx context.Context, key string) ([]byte, error) {
	return j.ask(ctx, "TryGet", message{Kind: kindTry, Key: []byte(key)})
}

func (j *Job) ask(ctx context.Context, call string, m message) ([]byte, error) {
	failed := func(err error) error { return fmt.Errorf("dist: %s %q: %w", call, m.Key, err) }
	if len(m.Key) == 0 {
		return nil, failed(errors.New("expected a key of one byte at least"))
	}
	if ctx.Err() != nil {
		return nil, failed(context.Cause(ctx))
	}
	if m.Kind == kindGet {
		defer j.activity.await(fmt.Sprintf("Store.Get of %q", m.Key))()
	}
	answers := make(chan message, 1)
	forget, ok := j.request(&m, answers)
	if !ok {
		return nil, failed(errors.New("the job is closed"))
	}
	select {
	case a := <-answers:
		switch a.Kind {
		case kindTaken:
			return nil, failed(ErrKeyExists)
		case kindNone:
			return nil, failed(ErrNoKey)
		}
		return bytes.Clone(a.Data), nil
	case <-ctx.Done():
		forget()
		return nil, failed(context.Cause(ctx))
	case <-j.over:
		forget()
		return nil, failed(errors.New("the job is closed"))
	}
}

func (j *Job) request(m *message, answers chan message) (forget func(), ok bool) {
	if j.left.Load() {
		return nil, false
	}
	p := j.spoke
	if p == nil {
		m.ID = j.values.own()
		j.values.answer(0, *m, func(a message) { answers <- a })
		return func() { j.values.answer(0, message{Kind: kindForget, ID: m.ID, Key: m.Key}, nil) }, true
	}
	p.mu.Lock()
	p.asked++
	m.ID = p.asked
	p.asks[m.ID] = answers
	p.mu.Unlock()
	p.send(*m)
	return func() {
		p.mu.Lock()
		delete(p.asks, m.ID)
		p.mu.Unlock()
		p.send(message{Kind: kindForget, ID: m.ID, Key: m.Key})
	}, true
}

func (s *spoke) answered(m message) {
	s.mu.Lock()
	answers := s.asks[m.ID]
	delete(s.asks, m.ID)
	s.mu.Unlock()
	if answers != nil {
		answers <- m
	}
}

type values struct {
	mu      sync.Mutex
	of      map[string][]byte
	waiting map[string][]waiter // by key
	asked   int64               // by rank 0 itself
}

type waiter struct {
	rank int
	id   int64
	send func(message)
}

func (v *values) own() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.asked
}

func (v *values) answer(rank int, m message, send func(message)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := string(m.Key)
	value, has := v.of[key]
	switch {
	case m.Kind == kindForget:
		left := slices.DeleteFunc(v.waiting[key], func(w waiter) bool { return w.rank == rank && w.id == m.ID })
		if len(left) > 0 {
			v.waiting[key] = left
		} else {
			delete(v.waiting, key)
		}
	case m.Kind == kindPut && has:
		send(message{Kind: kindTaken, ID: m.ID})
	case m.Kind == kindPut:
		if v.of == nil {
			v.of = map[string][]byte{}
		}
		v.of[key] = m.Data
		send(message{Kind: kindValue, ID: m.ID})
		for _, w := range v.waiting[key] {
			w.send(message{Kind: kindValue, ID: w.id, Data: m.Data})
		}
		delete(v.waiting, key)
	case has:
		send(message{Kind: kindValue, ID: m.ID, Data: value})
	case m.Kind == kindTry:
		send(message{Kind: kindNone, ID: m.ID})
	default:
		if v.waiting == nil {
			v.waiting = map[string][]waiter{}
		}
		v.waiting[key] = append(v.waiting[key], waiter{rank, m.ID, send})
	}
}
