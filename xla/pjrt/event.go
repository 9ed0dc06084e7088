package pjrt

// #include "callback.h"
// #include "run.h"
import "C"

import (
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// Event is something that a plugin will have done: a program that runs, a copy. Its maker is its owner and closes it.
type Event struct{ *object }

var eventKind = &kind{name: "event", live: &live.events, free: freeEvent}

// held is what is in use until an event: Go's memory, and buffers that have no owner any more.
type held struct {
	pin     runtime.Pinner
	buffers []unsafe.Pointer
}

// newEvent takes over an event of the plugin, and what is in use until then; that may be nil.
func newEvent(c *Client, ptr unsafe.Pointer, until *held) (*Event, error) {
	o, err := newObject(c, &object{kind: eventKind, ptr: ptr, held: until})
	if err != nil {
		return nil, err
	}
	return collect(&Event{o}), nil
}

func freeEvent(o *object) error {
	p := o.client.plugin
	var err error
	if o.held != nil { // it must stay until then
		err = awaitEvent(p, o.ptr)
		o.held.pin.Unpin()
		for _, b := range o.held.buffers {
			err = firstError(err, destroyBuffer(p, b))
		}
	}
	return firstError(err, destroyEvent(p, o.ptr))
}

func destroyEvent(p *Plugin, ptr unsafe.Pointer) error {
	return p.failure("Event_Destroy", C.lazo_destroy_event(p.api, ptr))
}

func awaitEvent(p *Plugin, ptr unsafe.Pointer) error {
	return p.failure("Event_Await", C.lazo_await(p.api, ptr))
}

// Await waits until it is done, and gives the error it ended with.
func (e *Event) Await() error {
	if err := e.use(); err != nil {
		return err
	}
	return firstError(awaitEvent(e.client.plugin, e.ptr), e.done())
}

// Ready tells whether it is done, well or not.
func (e *Event) Ready() (bool, error) {
	if err := e.use(); err != nil {
		return false, err
	}
	p := e.client.plugin
	args := C.lazo_Event_IsReady_Args{event: e.ptr}
	err := invoke(p, "Event_IsReady", p.api.Event_IsReady, &args)
	return bool(args.is_ready), firstError(err, e.done())
}

// OnReady has f called once, in a goroutine of its own, when it is done, with the error it ended with. That may be at
// once. A Close of the event does not prevent it.
func (e *Event) OnReady(f func(error)) error {
	if err := e.use(); err != nil {
		return err
	}
	return firstError(e.client.plugin.onReady(e.ptr, f), e.done())
}

// waiter is a Go function that a plugin is to call.
type waiter struct {
	plugin *Plugin
	call   func(error)
}

func (p *Plugin) onReady(event unsafe.Pointer, f func(error)) error {
	cell, err := newCell(waiter{p, f})
	if err != nil {
		return err
	}
	if err := p.failure("Event_OnReady", C.lazo_on_ready(p.api, event, cell)); err != nil {
		freeCell(cell)
		return err
	}
	return nil
}

// lazoReady is called on a thread of the plugin's, so it does next to nothing there.
//
//export lazoReady
func lazoReady(raw, cell unsafe.Pointer) {
	w := cgo.Handle(*(*C.uintptr_t)(cell)).Value().(waiter)
	freeCell((*C.uintptr_t)(cell))
	err := w.plugin.failure("Event_OnReady", raw)
	go w.call(err)
}

// Close gives the event up; what it stands for goes on. The event of a copy to the host, and of a run that uses the
// host's memory or replaces arguments, is waited for, and its error given.
func (e *Event) Close() error { return closeNow(e) }
