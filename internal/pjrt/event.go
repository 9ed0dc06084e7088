package pjrt

// #include "callback.h"
// #include "run.h"
import "C"

import (
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// Event is the end of a plugin's work, like a run or a copy. The caller that receives it closes it.
type Event struct{ *object }

var eventKind = &kind{name: "event", live: &live.events, free: freeEvent}

// memory in use until an event: pinned Go memory, and replaced buffers
type held struct {
	pin     runtime.Pinner
	buffers []unsafe.Pointer
}

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
	if o.held != nil {
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

func (e *Event) Await() error {
	if err := e.use(); err != nil {
		return err
	}
	return firstError(awaitEvent(e.client.plugin, e.ptr), e.done())
}

func (e *Event) Ready() (bool, error) {
	if err := e.use(); err != nil {
		return false, err
	}
	p := e.client.plugin
	args := C.lazo_Event_IsReady_Args{event: e.ptr}
	err := invoke(p, "Event_IsReady", p.api.Event_IsReady, &args)
	return bool(args.is_ready), firstError(err, e.done())
}

// OnReady calls f once, in its own goroutine, when the work has ended, with its error, even after Close.
func (e *Event) OnReady(f func(error)) error {
	if err := e.use(); err != nil {
		return err
	}
	return firstError(e.client.plugin.onReady(e.ptr, f), e.done())
}

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

// lazoReady must not hold up the plugin's thread.
//
//export lazoReady
func lazoReady(raw, cell unsafe.Pointer) {
	w := cgo.Handle(*(*C.uintptr_t)(cell)).Value().(waiter)
	freeCell((*C.uintptr_t)(cell))
	err := w.plugin.failure("Event_OnReady", raw)
	go w.call(err)
}

// Close releases the event. After a copy to the host, or a run that uses host memory or replaces arguments, it waits
// and returns the work's error.
func (e *Event) Close() error { return closeNow(e) }
