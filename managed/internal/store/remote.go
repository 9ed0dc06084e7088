package store

import (
	"errors"
	"fmt"
	"sync"
	"weak"

	"github.com/gomlx/compute"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Remote is an array that stays on the device until it is read, or was read by its run: then device is nil.
type Remote struct {
	device *onDevice
	value  *Tensor
	flat   any // its elements
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

// Tensor reads the array.
func (r *Remote) Tensor() (*Tensor, error) {
	err := r.read()
	return r.value, err
}

// Flat reads the array's elements.
func (r *Remote) Flat() (any, error) {
	err := r.read()
	return r.flat, err
}

// Hold has an array that a run reported wait to be read, unless the run has brought it along.
func (s *Store) Hold(r *Remote, b compute.Buffer) error {
	if flat, ok := xla.OnHost(b); ok {
		r.flat = flat
		return nil
	}
	r.device = &onDevice{strategy: s.strategy, buffer: b}
	return s.unread.add(r)
}

// onDevice is the array where the strategy has it. It is apart from the logs so that it can be freed without them.
type onDevice struct {
	strategy strategies.Strategy
	mu       sync.Mutex     // a writer in the background reads while the training goes on
	buffer   compute.Buffer // nil once freed
}

// free frees the array, if it was not; mu is held.
func (d *onDevice) free() error {
	b := d.buffer
	d.buffer = nil
	if b == nil {
		return nil
	}
	return d.strategy.Free(b)
}

// maxUnread bounds how many arrays of logs wait on the device: a history of a million steps must not hold a million
// device buffers. A step, or a block of steps, has one for all its numbers, and one for each reported array. At twice
// as many the older half is read, or freed where nobody has the logs any more.
const maxUnread = 256

// unread are the logs that nobody has read yet, oldest first.
type unread struct {
	mu    sync.Mutex
	queue []waiting
}

// waiting holds a buffer, and the logs only as long as somebody else does: logs that were dropped unread are freed
// and not fetched.
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

// drain reads or frees the oldest until n are left.
func (u *unread) drain(n int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var first error
	cut := max(len(u.queue)-n, 0)
	for _, w := range u.queue[:cut] {
		if p := w.logs.Value(); p != nil {
			_ = p.read() // an error stays with the logs, for whoever reads them
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
