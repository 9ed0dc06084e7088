package store

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"weak"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Remote is a reported array; without a device the run has copied it.
type Remote struct {
	device *onDevice
	value  *Tensor
	shape  shapes.Shape // without a device
	flat   any
	err    error
}

func (r *Remote) read() error {
	if r.device == nil {
		return nil
	}
	r.device.mu.Lock()
	defer r.device.mu.Unlock()
	if r.device.buffer == nil {
		return r.err
	}
	t, err := r.device.strategy.Fetch(r.device.buffer)
	if err == nil {
		err = t.ConstFlatData(func(flat any) { r.flat = flat })
	}
	if err = errors.Join(err, r.device.free()); err != nil {
		r.err = fmt.Errorf("managed: read logs: %w", err)
	}
	r.value = t
	return r.err
}

func (r *Remote) Tensor() (*Tensor, error) {
	if err := r.read(); err != nil || r.device != nil {
		return r.value, err
	}
	t := tensors.FromShape(r.shape)
	return t, t.MutableFlatData(func(flat any) { reflect.Copy(reflect.ValueOf(flat), reflect.ValueOf(r.flat)) })
}

func (r *Remote) Flat() (any, error) {
	err := r.read()
	return r.flat, err
}

// Hold keeps an array for reading, unless the run has copied it.
func (s *Store) Hold(r *Remote, b compute.Buffer) error {
	if flat, ok := xla.OnHost(b); ok {
		var err error
		r.flat = flat
		r.shape, err = b.Shape()
		return err
	}
	r.device = &onDevice{strategy: s.strategy, buffer: b}
	return s.unread.add(r)
}

// onDevice can be freed without the logs.
type onDevice struct {
	strategy strategies.Strategy
	mu       sync.Mutex     // a background writer reads during training
	buffer   compute.Buffer // nil once freed
}

// free needs mu held.
func (d *onDevice) free() error {
	b := d.buffer
	d.buffer = nil
	if b == nil {
		return nil
	}
	return d.strategy.Free(b)
}

// At twice maxUnread unread arrays on the device the oldest are fetched: maxUnread stay.
const maxUnread = 256

type unread struct {
	mu    sync.Mutex
	queue []waiting
}

// waiting has a weak pointer: dropped logs are not fetched.
type waiting struct {
	device *onDevice
	logs   weak.Pointer[Remote]
}

func (u *unread) add(r *Remote) error {
	u.mu.Lock()
	u.queue = append(u.queue, waiting{r.device, weak.Make(r)})
	n := len(u.queue)
	u.mu.Unlock()
	if n < 2*maxUnread {
		return nil
	}
	return u.drain(maxUnread)
}

func (u *unread) drain(n int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var first error
	cut := max(len(u.queue)-n, 0)
	for _, w := range u.queue[:cut] {
		if p := w.logs.Value(); p != nil {
			_ = p.read() // the logs keep the error
			continue
		}
		w.device.mu.Lock()
		err := w.device.free()
		w.device.mu.Unlock()
		if err != nil && first == nil {
			first = err
		}
	}
	u.queue = append(u.queue[:0], u.queue[cut:]...)
	return first
}
