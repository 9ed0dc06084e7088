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

// object is what buffers, programs and the others of a client have in common: a pointer of the plugin, and a state that
// counts the uses that are under way.
//
// Uses begin and end without waiting. Close keeps new ones out; the last one out frees the pointer.
type object struct {
	*kind
	state      atomic.Int64 // the number of users, and the two flags below
	ptr        unsafe.Pointer
	client     *Client
	pair       unsafe.Pointer // a second pointer that is freed with the first, or nil
	held       *held          // what the plugin uses as long as the object lives, or nil
	of         *object        // what this one uses until it is freed, or nil
	prev, next *object        // the client's list, guarded by its mutex
	// refer is held while an external reference to a buffer is added or taken away: the plugin's list of them is not
	// guarded, and two at once leave one in it for ever, or end the process.
	refer sync.Mutex
}

// kind is what is the same for all objects of a type.
type kind struct {
	name string
	live *atomic.Int64
	free func(*object) error
}

const (
	closedFlag = 1 << 62 // no new users
	aloneFlag  = 1 << 61 // one user alone, which may change ptr
)

// newObject takes over what is in o. If the client was closed meanwhile, it is freed and the error is [ErrClosed].
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

// use keeps the object from being freed until done. The pointer does not change meanwhile.
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

// useAlone is use without other users; doneAlone ends it.
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

// closedBefore is the [ErrClosed] of an object after the Close of its client.
type closedBefore struct{}

func (closedBefore) Error() string { return gate.ErrOwnerClosed.Error() }
func (closedBefore) Is(target error) bool {
	return target == ErrClosed || target == gate.ErrOwnerClosed
}

// close frees the object, at once or when its last user is done.
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

// collect has the garbage collector close what was not closed. SetFinalizer does it at a tenth of the cost of
// AddCleanup, which is more than a small program takes; an object does not point to its wrapper, so there are no
// cycles.
func collect[W interface{ self() *object }](wrapper W) W {
	runtime.SetFinalizer(wrapper, finalize[W])
	return wrapper
}

// closeNow is the Close of a wrapper. The wrapper stays reachable until it is closed: the collector would otherwise
// take it for forgotten within its own Close, close it first, and have that return ErrClosed.
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

// Live counts what exists now.
func Live() Counts {
	return Counts{
		Clients: live.clients.Load(), Buffers: live.buffers.Load(), Executables: live.executables.Load(),
		Events: live.events.Load(), Views: live.views.Load(), Topologies: live.topologies.Load(), Calls: live.calls.Load(),
		Callbacks: live.callbacks.Load(), Allocations: live.allocations.Load(), Collected: live.collected.Load(),
	}
}
