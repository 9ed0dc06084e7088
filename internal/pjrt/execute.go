package pjrt

// #include <stdlib.h>
// #include "run.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

type launch struct {
	c       *C.lazo_run
	of      *Executable
	devices []*Device
	in, out []unsafe.Pointer
	replace []C.int64_t
}

func (e *Executable) newRun(devices []*Device, args, hosts int) (launch, error) {
	c := C.lazo_new_run(e.client.plugin.api, e.ptr, C.size_t(len(devices)), C.size_t(args), C.size_t(len(e.outputs)), C.size_t(hosts))
	if c == nil {
		return launch{}, fmt.Errorf("pjrt: run %s: %w: no C memory for its arguments", e.name, ErrOutOfMemory)
	}
	live.allocations.Add(1)
	c.mark = e.client.plugin.mark
	return launch{
		c: c, of: e, devices: devices,
		in: unsafe.Slice(c.in, len(devices)*args), out: unsafe.Slice(c.out, len(devices)*len(e.outputs)),
		replace: unsafe.Slice(c.replace, len(e.outputs)),
	}, nil
}

func (r launch) free() { free(unsafe.Pointer(r.c)) }

func (r launch) failure() error {
	p := r.of.client.plugin
	cause := p.failure(runCalls[r.c.failed], r.c.error)
	r.c.error = nil
	if cause == nil {
		return nil
	}
	e := &RunError{Program: r.of.name, Err: cause, Ran: r.c.ran != 0}
	if e.Ran {
		return e
	}
	args := int(r.c.args)
	for i, ptr := range r.in {
		if ptr == nil {
			continue
		}
		// An unknown state counts as lost.
		if gone, err := isDeleted(p, ptr); err != nil || gone {
			e.Lost = append(e.Lost, Argument{i / args, i % args})
		}
	}
	return e
}

// results closes all on an error. until, if not nil, has what each device uses until its event.
func (r launch) results(until []*held) (*Execution, error) {
	x := &Execution{Outputs: make([][]*Buffer, len(r.devices))}
	client, outs := r.of.client, len(r.of.outputs)
	var first error
	for i, ptr := range r.out {
		if ptr == nil {
			continue
		}
		r.out[i] = nil
		if r.replace[i%outs] >= 0 { // keep the replaced buffer until the event
			if until == nil {
				until = make([]*held, len(r.devices))
			}
			if until[i/outs] == nil {
				until[i/outs] = new(held)
			}
			until[i/outs].buffers = append(until[i/outs].buffers, ptr)
			continue
		}
		b, err := newBuffer(client, ptr, r.of.outputs[i%outs], r.devices[i/outs])
		if first = firstError(first, err); err == nil {
			x.Outputs[i/outs] = append(x.Outputs[i/outs], b)
		}
	}
	for d, ptr := range unsafe.Slice(r.c.events, len(r.devices)) {
		if ptr == nil {
			continue
		}
		var h *held
		if until != nil {
			h = until[d]
		}
		e, err := newEvent(client, ptr, h)
		if first = firstError(first, err); err == nil {
			x.Done = append(x.Done, e)
		}
	}
	if first != nil {
		return nil, firstError(first, x.Close())
	}
	return x, nil
}

func (e *Executable) checkArgument(b *Buffer, index int, on *Device) error {
	if b == nil {
		return fmt.Errorf("pjrt: run %s: argument %d: %w: there is no buffer", e.name, index, ErrInvalidArgument)
	}
	if b.client != e.client {
		return fmt.Errorf("pjrt: run %s: argument %d: %w: the buffer is of another client; expected one made by the same (a buffer belongs to one xla.Runtime)", e.name, index, ErrInvalidArgument)
	}
	if b.device != on {
		return fmt.Errorf("pjrt: run %s: argument %d: %w: expected a buffer on %v, got one on %v", e.name, index, ErrInvalidArgument, on, b.device)
	}
	s, err := e.entry()
	if errors.Is(err, ErrUnimplemented) {
		return nil
	}
	if err == nil && index < len(s.parameters) && !s.parameters[index].Equal(b.shape) {
		err = fmt.Errorf("pjrt: run %s: argument %d: %w: expected shape %v, got %v", e.name, index, ErrInvalidArgument, s.parameters[index], b.shape)
	}
	return err
}

func (e *Executable) checkCount(args int) error {
	s, err := e.entry()
	if errors.Is(err, ErrUnimplemented) {
		return nil
	}
	if err == nil && args != len(s.parameters) {
		err = fmt.Errorf("pjrt: run %s: %w: expected %d arguments, got %d", e.name, ErrInvalidArgument, len(s.parameters), args)
	}
	return err
}

// Execute starts the program. args has the arguments for each device. It consumes donated ones ([Executable.Donated]).
//
// If the program does not start, the error is a [*RunError], or names a wrong argument. The events and outputs have
// later errors.
func (e *Executable) Execute(args [][]*Buffer, options ExecuteOptions) (*Execution, error) {
	if err := e.use(); err != nil {
		return nil, err
	}
	x, err := e.execute(args, options)
	if err := e.done(); err != nil {
		return nil, err
	}
	return x, err
}

func (e *Executable) execute(args [][]*Buffer, options ExecuteOptions) (x *Execution, err error) {
	devices := e.devices
	if options.Device != nil {
		devices = []*Device{options.Device}
	}
	if len(args) != len(devices) || len(args) == 0 {
		return nil, fmt.Errorf("pjrt: run %s: %w: expected arguments for %d devices, got %d (a portable program needs ExecuteOptions.Device)",
			e.name, ErrInvalidArgument, len(devices), len(args))
	}
	n := len(args[0])
	if err := e.checkCount(n); err != nil {
		return nil, err
	}
	r, err := e.newRun(devices, n, 0)
	if err != nil {
		return nil, err
	}
	defer r.free()
	if options.Device != nil {
		r.c.execute.execute_device = options.Device.ptr
	}
	r.c.options.launch_id = C.int(options.LaunchID)
	if err := r.keep(options.Keep); err != nil {
		return nil, err
	}
	var held []*Buffer
	defer func() {
		for _, b := range held {
			err = firstError(err, b.done())
		}
	}()
	for d, list := range args {
		if len(list) != n {
			return nil, fmt.Errorf("pjrt: run %s: %w: %d arguments for device 0, %d for device %d", e.name, ErrInvalidArgument, n, len(list), d)
		}
		for i, b := range list {
			if err := e.checkArgument(b, i, devices[d]); err != nil {
				return nil, err
			}
			if err := b.use(); err != nil {
				return nil, during(err, "run %s: argument %d", e.name, i)
			}
			held = append(held, b)
			r.in[d*n+i] = b.ptr
		}
	}
	C.lazo_do(r.c, C.LAZO_START)
	if err := r.failure(); err != nil {
		if r.c.ran != 0 {
			if x, resultErr := r.results(nil); resultErr == nil {
				_ = x.Close()
			}
		}
		return nil, err
	}
	return r.results(nil)
}

func (r launch) keep(list []int) error {
	kept := unsafe.Slice(r.c.kept, int(r.c.args))
	if len(list) > len(kept) {
		return fmt.Errorf("pjrt: run %s: %w: %d arguments to keep of %d", r.of.name, ErrInvalidArgument, len(list), len(kept))
	}
	for i, arg := range list {
		if arg < 0 || arg >= len(kept) {
			return fmt.Errorf("pjrt: run %s: %w: argument %d is to be kept, there are %d", r.of.name, ErrInvalidArgument, arg, len(kept))
		}
		kept[i] = C.int64_t(arg)
	}
	r.c.options.num_non_donatable_input_indices = C.size_t(len(list))
	return nil
}
