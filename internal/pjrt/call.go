package pjrt

// #include "run.h"
import "C"

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"unsafe"
)

// Call is a program with its arguments, for repeated runs of one C call each. Calls may share buffers: a run of one
// replaces a buffer in all.
type Call struct {
	*object
	run     launch
	args    []*Buffer
	inPlace []bool
	host    []HostInput
	sizes   []int
	reads   []int
	pin     runtime.Pinner
}

var callKind = &kind{name: "call", live: &live.calls, free: func(o *object) error {
	err := o.client.plugin.failure("Buffer_Destroy", C.lazo_drop((*C.lazo_run)(o.ptr)))
	free(o.ptr)
	return err
}}

// copying is faster than a new buffer
const keptBytes = 16 << 10

// NewCall prepares runs of the program. A portable one is [ErrInvalidArgument].
func (e *Executable) NewCall(options CallOptions) (*Call, error) {
	if err := e.use(); err != nil {
		return nil, err
	}
	c, err := e.newCall(options)
	if err := e.done(); err != nil {
		return nil, err
	}
	return c, err
}

func (e *Executable) newCall(options CallOptions) (*Call, error) {
	s, err := e.entry()
	if err != nil {
		return nil, during(err, "call %s: its parameters are not known", e.name)
	}
	if len(e.devices) == 0 {
		return nil, fmt.Errorf("pjrt: call %s: %w: a portable program has no devices to be prepared for: use Execute", e.name, ErrInvalidArgument)
	}
	n := len(s.parameters)
	c := &Call{
		host: slices.Clone(options.Host), reads: slices.Clone(options.Read), args: make([]*Buffer, len(e.devices)*n), inPlace: make([]bool, n),
	}
	for _, h := range c.host {
		if h.Argument < 0 || h.Argument >= n || !s.parameters[h.Argument].Equal(h.Shape) {
			return nil, fmt.Errorf("pjrt: call %s: %w: host input %d of shape %v: the program has the parameters %v", e.name, ErrInvalidArgument, h.Argument, h.Shape, s.parameters)
		}
		size, err := h.Shape.Size()
		if err != nil {
			return nil, err
		}
		c.sizes = append(c.sizes, size)
		if c.inPlace[h.Argument] {
			return nil, fmt.Errorf("pjrt: call %s: %w: argument %d is two host inputs", e.name, ErrInvalidArgument, h.Argument)
		}
		c.inPlace[h.Argument] = true
	}
	for output, arg := range options.InPlace {
		if output < 0 || output >= len(e.outputs) || arg < 0 || arg >= n {
			return nil, fmt.Errorf("pjrt: call %s: %w: output %d in place of argument %d: there are %d outputs and %d arguments", e.name, ErrInvalidArgument, output, arg, len(e.outputs), n)
		}
		if !e.outputs[output].Equal(s.parameters[arg]) {
			return nil, fmt.Errorf("pjrt: call %s: %w: output %d of shape %v in place of argument %d of shape %v", e.name, ErrInvalidArgument, output, e.outputs[output], arg, s.parameters[arg])
		}
		if c.inPlace[arg] {
			return nil, fmt.Errorf("pjrt: call %s: %w: argument %d is replaced twice, or a host input", e.name, ErrInvalidArgument, arg)
		}
		c.inPlace[arg] = true
	}
	for _, h := range c.host {
		c.inPlace[h.Argument] = false
	}
	for i, output := range c.reads {
		if _, replaces := options.InPlace[output]; replaces || output < 0 || output >= len(e.outputs) || slices.Contains(c.reads[:i], output) {
			return nil, fmt.Errorf("pjrt: call %s: %w: output %d is to be read: there are %d outputs, and it must be one of them, once, and in no argument's place", e.name, ErrInvalidArgument, output, len(e.outputs))
		}
		if size, err := e.outputs[output].Size(); err != nil || size == 0 || e.outputs[output].DType.packed() {
			return nil, fmt.Errorf("pjrt: call %s: %w: output %d of shape %v cannot be read with a run: it has no elements, or several in a byte", e.name, ErrInvalidArgument, output, e.outputs[output])
		}
	}
	if c.run, err = e.newRun(e.devices, n, len(c.host)); err != nil {
		return nil, err
	}
	for output, arg := range options.InPlace {
		c.run.replace[output] = C.int64_t(arg)
	}
	c.prepareHost()
	if err := c.keepHost(s.donated); err != nil {
		err = firstError(err, callKind.free(&object{ptr: unsafe.Pointer(c.run.c), client: e.client}))
		return nil, during(err, "call %s: buffers for its host inputs", e.name)
	}
	if c.object, err = newObject(e.client, &object{kind: callKind, ptr: unsafe.Pointer(c.run.c)}); err != nil {
		return nil, err
	}
	return collect(c), nil
}

func (c *Call) prepareHost() {
	dims := unsafe.Slice(c.run.c.host_dims, len(c.host)*maxDims)
	for h, input := range c.host {
		unsafe.Slice(c.run.c.host_arg, len(c.host))[h] = C.int64_t(input.Argument)
		for i, d := range input.Shape.Dims {
			dims[h*maxDims+i] = C.int64_t(d)
		}
		for d, device := range c.run.devices {
			args := &c.hostArgs()[d*len(c.host)+h]
			args.client, args.device, args._type = c.run.of.client.ptr, device.ptr, C.int(input.Shape.DType)
			args.dims, args.num_dims = &dims[h*maxDims], C.size_t(len(input.Shape.Dims))
		}
	}
}

// Donated arguments need a new buffer in each run.
func (c *Call) keepHost(donated map[int]int) error {
	zeros := make([]byte, keptBytes)
	p := c.run.of.client.plugin
	for h, input := range c.host {
		if size := c.sizes[h]; size == 0 || size > keptBytes || input.Shape.DType.packed() || slices.Contains(slices.Collect(maps.Values(donated)), input.Argument) {
			continue
		}
		for d := range c.run.devices {
			var failed C.int
			problem := C.lazo_keep(c.run.c, C.size_t(d), C.size_t(h), C.size_t(c.sizes[h]), unsafe.Pointer(&zeros[0]), &failed)
			if err := p.failure(runCalls[failed], problem); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Call) hostArgs() []C.lazo_Client_BufferFromHostBuffer_Args {
	return unsafe.Slice(c.run.c.host, len(c.run.devices)*len(c.host))
}

// Set sets an argument of later runs. device is an index of [Executable.Devices].
func (c *Call) Set(device, argument int, b *Buffer) error {
	if err := c.useAlone(); err != nil {
		return err
	}
	err := c.set(device, argument, b)
	return firstError(err, c.doneAlone())
}

func (c *Call) set(device, argument int, b *Buffer) error {
	n := len(c.inPlace)
	if device < 0 || device >= len(c.run.devices) || argument < 0 || argument >= n {
		return fmt.Errorf("pjrt: call %s: %w: argument %d on device %d: there are %d arguments and %d devices", c.run.of.name, ErrInvalidArgument, argument, device, n, len(c.run.devices))
	}
	if slices.ContainsFunc(c.host, func(h HostInput) bool { return h.Argument == argument }) {
		return fmt.Errorf("pjrt: call %s: %w: argument %d is a host input", c.run.of.name, ErrInvalidArgument, argument)
	}
	if err := c.run.of.checkArgument(b, argument, c.run.devices[device]); err != nil {
		return err
	}
	c.args[device*n+argument] = b
	return nil
}

// KeepArguments sets whether runs copy donated arguments, which needs more memory: a failed [Call.Run] then loses
// nothing.
func (c *Call) KeepArguments(keep bool) error {
	if err := c.useAlone(); err != nil {
		return err
	}
	var list []int
	for i := range c.inPlace {
		if keep {
			list = append(list, i)
		}
	}
	return firstError(c.run.keep(list), c.doneAlone())
}

// Run runs the program and waits. host has the memory of the host inputs, device after device, unused after Run. Run
// returns, by device, the outputs that replace no argument. The caller owns them.
//
// A [*RunError] lists the lost arguments. [ErrBusy] and [ErrClosed] mean that nothing was done.
func (c *Call) Run(host ...[]byte) ([][]*Buffer, error) {
	return c.RunInto(nil, host...)
}

// RunInto is Run that copies the outputs of [CallOptions].Read to memory without Buffers. memory has one slice for
// each, device after device, of exactly the output's size, row-major; empty, it is Run. A copy's error is a
// [*RunError] with Ran set.
func (c *Call) RunInto(memory [][]byte, host ...[]byte) ([][]*Buffer, error) {
	x, err := c.start(C.LAZO_RUN, host, memory)
	if err != nil {
		return nil, err
	}
	return x.Outputs, nil
}

// Start is Run without the wait. It copies the host inputs. Replaced arguments hold the outputs at once, for further
// runs. The events and buffers have a later error; replaced arguments are then lost.
func (c *Call) Start(host ...[]byte) (*Execution, error) { return c.start(C.LAZO_START, host, nil) }

// StartShared is Start without the copy, on devices that can use host memory: keep it unchanged until the run ends
// ([Execution.Await]).
func (c *Call) StartShared(host ...[]byte) (*Execution, error) {
	return c.start(C.LAZO_STAY, host, nil)
}

func (c *Call) start(mode C.int, host, read [][]byte) (x *Execution, err error) {
	if err := c.useAlone(); err != nil {
		return nil, err
	}
	defer func() { err = firstError(err, c.doneAlone()) }()
	if err := c.run.of.use(); err != nil {
		return nil, err
	}
	defer func() { err = firstError(err, c.run.of.done()) }()
	var until []*held
	if mode == C.LAZO_STAY {
		for range c.run.devices {
			until = append(until, new(held))
		}
		defer func() {
			if x == nil {
				for _, h := range until {
					h.pin.Unpin()
				}
			}
		}()
	}
	defer c.pin.Unpin()
	if err := c.giveHost(host, until); err != nil {
		return nil, err
	}
	if err := c.giveRead(read); err != nil {
		return nil, err
	}
	defer c.forgetRead(read)
	held := 0
	defer func() { err = firstError(err, c.release(held)) }()
	for ; held < len(c.args); held++ {
		if err := c.hold(held); err != nil {
			return nil, err
		}
	}
	C.lazo_do(c.run.c, mode)
	if c.run.c.ran != 0 {
		for i, b := range c.args {
			if b != nil && c.inPlace[i%len(c.inPlace)] {
				b.ptr = c.run.in[i]
			}
		}
	}
	if err := c.run.failure(); err != nil {
		if c.run.c.ran != 0 {
			if x, resultErr := c.run.results(until); resultErr == nil {
				_ = x.Close()
			}
		}
		return nil, err
	}
	return c.run.results(until)
}

// docs/decisions/0021
func point(place *unsafe.Pointer, to *byte) {
	*(*uintptr)(unsafe.Pointer(place)) = uintptr(unsafe.Pointer(to))
}

// The host inputs are pinned for the call, or until the device's event.
func (c *Call) giveHost(host [][]byte, until []*held) error {
	if want := len(c.run.devices) * len(c.host); len(host) != want {
		return fmt.Errorf("pjrt: call %s: %w: expected %d host inputs, got %d", c.run.of.name, ErrInvalidArgument, want, len(host))
	}
	for i, data := range host {
		if h := i % len(c.host); len(data) != c.sizes[h] {
			return fmt.Errorf("pjrt: call %s: host input %d, argument %d of shape %v: %w: expected %d bytes, got %d",
				c.run.of.name, i, c.host[h].Argument, c.host[h].Shape, ErrInvalidArgument, c.sizes[h], len(data))
		}
		point(&c.hostArgs()[i].data, nil)
		if len(data) > 0 {
			pin := &c.pin
			if until != nil {
				pin = &until[i/len(c.host)].pin
			}
			pin.Pin(&data[0])
			point(&c.hostArgs()[i].data, &data[0])
		}
	}
	return nil
}

func (c *Call) giveRead(memory [][]byte) error {
	if len(memory) == 0 {
		return nil
	}
	if want := len(c.run.devices) * len(c.reads); len(memory) != want {
		return fmt.Errorf("pjrt: call %s: %w: expected memory for %d outputs to be read, got %d", c.run.of.name, ErrInvalidArgument, want, len(memory))
	}
	for i, data := range memory {
		shape := c.run.of.outputs[c.reads[i%len(c.reads)]]
		if size, err := shape.Size(); err != nil || len(data) != size {
			return fmt.Errorf("pjrt: call %s: output %d of shape %v: %w: expected room for %d bytes, got %d",
				c.run.of.name, c.reads[i%len(c.reads)], shape, ErrInvalidArgument, size, len(data))
		}
	}
	for i, data := range memory {
		shape, to := c.run.of.outputs[c.reads[i%len(c.reads)]], c.readPlace(i)
		c.pin.Pin(&data[0])
		to.size, to.num_dims = C.size_t(len(data)), C.size_t(len(shape.Dims))
		point(&to.dst, &data[0])
	}
	return nil
}

func (c *Call) forgetRead(memory [][]byte) {
	for i := range memory {
		point(&c.readPlace(i).dst, nil)
	}
}

func (c *Call) readPlace(i int) *C.lazo_read {
	outs := len(c.run.of.outputs)
	return &unsafe.Slice(c.run.c.read, len(c.run.devices)*outs)[i/len(c.reads)*outs+c.reads[i%len(c.reads)]]
}

func (c *Call) hold(i int) error {
	n := len(c.inPlace)
	b := c.args[i]
	if b == nil {
		if slices.ContainsFunc(c.host, func(h HostInput) bool { return h.Argument == i%n }) {
			return nil
		}
		return fmt.Errorf("pjrt: call %s: %w: argument %d on device %d is not set", c.run.of.name, ErrInvalidArgument, i%n, i/n)
	}
	var err error
	if c.inPlace[i%n] {
		err = b.useAlone()
	} else {
		err = b.use()
	}
	if err != nil {
		return during(err, "call %s: argument %d on device %d", c.run.of.name, i%n, i/n)
	}
	c.run.in[i] = b.ptr
	return nil
}

func (c *Call) release(held int) error {
	var first error
	for i, b := range c.args[:held] {
		if b == nil {
			continue
		}
		if c.inPlace[i%len(c.inPlace)] {
			first = firstError(first, b.doneAlone())
		} else {
			first = firstError(first, b.done())
		}
		c.run.in[i] = nil
	}
	return first
}

func (c *Call) Close() error { return closeNow(c) }
