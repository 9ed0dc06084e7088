//go:build cgo

package pjrt

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/gate"
)

// object is a plugin's pointer with a count of users, which never wait. After Close the last user frees the pointer.
type object struct {
	*kind
	state      atomic.Int64
	ptr        unsafe.Pointer
	client     *Client
	pair       unsafe.Pointer // freed with ptr, or nil
	held       *held          // used until the object is freed, or nil
	of         *object        // used until this one is freed, or nil
	prev, next *object        // client's list, under its mutex
	// refer guards a buffer's external references: the plugin's list has no lock, and a race ends the process.
	refer sync.Mutex
}

type kind struct {
	name string
	live *atomic.Int64
	free func(*object) error
}

const (
	closedFlag = 1 << 62
	aloneFlag  = 1 << 61 // one exclusive user, which may change ptr
)

func newObject(c *Client, o *object) (*object, error) {
	o.client = c
	if !c.adopt(o) {
		if err := o.free(o); err != nil {
			return nil, err
		}
		return nil, c.closedError()
	}
	o.live.Add(1)
	return o, nil
}

func (o *object) use() error {
	for {
		s := o.state.Load()
		if s&(closedFlag|aloneFlag) != 0 {
			return o.refusal(s)
		}
		if o.state.CompareAndSwap(s, s+1) {
			return nil
		}
	}
}

func (o *object) done() error {
	if o.state.Add(-1) == closedFlag {
		return o.destroy()
	}
	return nil
}

func (o *object) useAlone() error {
	if o.state.CompareAndSwap(0, aloneFlag) {
		return nil
	}
	return o.refusal(o.state.Load())
}

func (o *object) doneAlone() error {
	for {
		s := o.state.Load()
		if !o.state.CompareAndSwap(s, s&^aloneFlag) {
			continue
		}
		if s&closedFlag != 0 {
			return o.destroy()
		}
		return nil
	}
}

func (o *object) refusal(state int64) error {
	if state&closedFlag != 0 {
		if o.client.isClosed() {
			return fmt.Errorf("pjrt: %s: %w", o.name, closedBefore{})
		}
		return fmt.Errorf("pjrt: %s: %w", o.name, ErrClosed)
	}
	return fmt.Errorf("pjrt: %s: %w", o.name, ErrBusy)
}

type closedBefore struct{}

func (closedBefore) Error() string { return gate.ErrOwnerClosed.Error() }
func (closedBefore) Is(target error) bool {
	return target == ErrClosed || target == gate.ErrOwnerClosed
}

func (o *object) close() error {
	for {
		s := o.state.Load()
		if s&closedFlag != 0 {
			return o.refusal(s)
		}
		if !o.state.CompareAndSwap(s, s|closedFlag) {
			continue
		}
		if s == 0 {
			return o.destroy()
		}
		return nil
	}
}

func (o *object) destroy() error {
	err := o.free(o)
	o.ptr, o.pair = nil, nil
	o.live.Add(-1)
	o.client.drop(o)
	return err
}

func (o *object) self() *object { return o }

// collect closes forgotten wrappers. SetFinalizer costs a tenth of AddCleanup. Objects do not point to wrappers: no
// cycles.
func collect[W interface{ self() *object }](wrapper W) W {
	runtime.SetFinalizer(wrapper, finalize[W])
	return wrapper
}

// Its finalizer could close the wrapper first.
func closeNow[W interface{ self() *object }](wrapper W) error {
	err := wrapper.self().close()
	runtime.KeepAlive(wrapper)
	return err
}

func finalize[W interface{ self() *object }](wrapper W) {
	if o := wrapper.self(); o.state.Load()&closedFlag == 0 && o.close() == nil {
		live.collected.Add(1)
	}
}

var live struct {
	clients, buffers, executables, events, views, topologies, calls, callbacks, allocations, collected atomic.Int64
}

func Live() Counts {
	return Counts{
		Clients: live.clients.Load(), Buffers: live.buffers.Load(), Executables: live.executables.Load(),
		Events: live.events.Load(), Views: live.views.Load(), Topologies: live.topologies.Load(), Calls: live.calls.Load(),
		Callbacks: live.callbacks.Load(), Allocations: live.allocations.Load(), Collected: live.collected.Load(),
	}
}
