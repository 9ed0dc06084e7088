package xla

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// On the CPU, Start returns early for blocks whose batches have more bytes.
const goOnBytes = 32 << 10

func (c *pjrtClient) prepare(p *Program, m *hlo.Module) (compute.Executable, error) {
	e, err := c.compileFor(m, false, true)
	if err != nil {
		return nil, err
	}
	runs, err := e.newCalls(p.built, p.place)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	switch {
	case c.plugin.Kind != CPU:
		p.mode = goOnCopied
	case p.block > 1 && p.place.Mesh.Devices() == 1 && runs.hostBytes() > goOnBytes:
		p.mode = goOnShared
	}
	if c.exchanges(m) {
		p.across = c.across
	}
	p.runs, p.took, p.text, p.devices = runs, e.took, e.text, runs.devices
	return e, nil
}

type calls struct {
	executable *executable
	devices    int
	options    pjrt.CallOptions
	shapes     []pjrt.Shape
	reads      []hostRead
	copyFirst  bool
	ranOnce    atomic.Bool
	turns      chan struct{} // or nil

	mu   sync.Mutex
	idle []*call // a stack: the last has most arguments set
}

type call struct {
	*calls
	call      *pjrt.Call
	set       []*pjrt.Buffer // arguments, device after device
	constants int
	memory    [][]byte
	into      [][]byte
	keeps     bool // copies what it replaces
}

type hostRead struct {
	output int
	at     int // among outputs that replace no input
	shape  shapes.Shape
	slice  reflect.Type
}

// copiedAtFirst limits a first run's copies, which might not fit.
const copiedAtFirst = 256 << 20

func (e *executable) inPlaceBytes(b Built) (sum int, err error) {
	for _, input := range b.InPlace {
		part, err := e.module.Parameters[input].Part()
		if err != nil {
			return 0, err
		}
		sum += int(part.ByteSize())
	}
	return sum, nil
}

func (e *executable) newCalls(b Built, place Placement) (*calls, error) {
	_, devices := e.of.runtime.Local(place.Mesh)
	c := &calls{executable: e, devices: devices, options: pjrt.CallOptions{InPlace: b.InPlace}}
	for _, i := range b.Host {
		s, err := e.module.Parameters[i].Part()
		if err != nil {
			return nil, err
		}
		c.shapes = append(c.shapes, fromGoMLX(s))
		c.options.Host = append(c.options.Host, pjrt.HostInput{Argument: i, Shape: fromGoMLX(s)})
	}
	if devices == 1 {
		if e.of.across == nil { // else a run may wait for one of another process
			c.turns = e.of.turns
		}
		c.reads = e.readsOf(b)
		for _, r := range c.reads {
			c.options.Read = append(c.options.Read, r.output)
		}
	}
	written, err := e.inPlaceBytes(b)
	if err != nil {
		return nil, err
	}
	c.copyFirst = written <= copiedAtFirst
	one, err := c.take()
	if err != nil {
		return nil, err
	}
	c.giveBack(one)
	return c, nil
}

func (e *executable) readsOf(b Built) (reads []hostRead) {
	at := 0
	for i, o := range e.module.Outputs {
		if _, replaces := b.InPlace[i]; replaces {
			continue
		}
		s := o.Shape
		if slices.Contains(b.Read, i) && s.Size() > 0 && packedBits(fromGoMLX(s)) == 0 {
			reads = append(reads, hostRead{i, at, s, reflect.SliceOf(dtypes.DType(s.DType).GoType())})
		}
		at++
	}
	return reads
}

func (c *calls) take() (one *call, err error) {
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		one, c.idle = c.idle[last], c.idle[:last]
	}
	c.mu.Unlock()
	if one == nil {
		made, err := c.executable.pjrt.NewCall(c.options)
		if err != nil {
			return nil, err
		}
		one = &call{calls: c, call: made, set: make([]*pjrt.Buffer, c.devices*len(c.executable.module.Parameters)),
			memory: make([][]byte, c.devices*len(c.shapes))}
		if err := one.setConstants(); err != nil {
			return nil, errors.Join(err, made.Close())
		}
	}
	if keep := c.copyFirst && !c.ranOnce.Load(); keep != one.keeps {
		if err := one.call.KeepArguments(keep); err != nil {
			return nil, errors.Join(err, one.call.Close())
		}
		one.keeps = keep
	}
	return one, nil
}

func (c *call) setConstants() error {
	first, n := c.executable.module.Constants()
	c.constants = n
	if n == 0 {
		return nil
	}
	for i, d := range c.executable.pjrt.Devices() {
		list, err := c.executable.constantsOn(d)
		if err != nil {
			return err
		}
		for j, b := range list {
			if err := c.call.Set(i, first+j, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *calls) giveBack(one *call) {
	c.mu.Lock()
	c.idle = append(c.idle, one)
	c.mu.Unlock()
}

func (c *calls) run(inputs []compute.Buffer, host []any, mode runMode) ([]compute.Buffer, *Running, error) {
	if c.turns != nil && mode == waitForEnd {
		c.turns <- struct{}{}
		defer func() { <-c.turns }()
	}
	one, err := c.take()
	if err != nil {
		return nil, nil, c.executable.explained(err)
	}
	defer c.giveBack(one)
	return one.run(inputs, host, mode)
}

func (c *call) run(inputs []compute.Buffer, host []any, mode runMode) ([]compute.Buffer, *Running, error) {
	n := len(c.set) / c.devices
	callers := n - c.constants
	if len(inputs) != callers*c.devices {
		return nil, nil, fmt.Errorf("expected %d inputs, got %d", callers*c.devices, len(inputs))
	}
	for i, input := range inputs {
		if input == nil {
			continue
		}
		b, err := bufferOf(input)
		if err != nil {
			return nil, nil, fmt.Errorf("input %d: %w", i, err)
		}
		if at := i/callers*n + i%callers; c.set[at] != b.Buffer {
			if err := c.call.Set(i/callers, i%callers, b.Buffer); err != nil {
				return nil, nil, err
			}
			c.set[at] = b.Buffer
		}
	}
	defer clear(c.memory)
	for i, flat := range host {
		var err error
		if c.memory[i], err = memoryOf(flat, c.shapes[i%len(c.shapes)]); err != nil {
			return nil, nil, fmt.Errorf("input %d from the host: %w", i, err)
		}
	}
	if !c.ranOnce.Load() {
		mode = waitForEnd
	}
	if mode == waitForEnd && len(c.reads) > 0 {
		return c.runReading()
	}
	made, running, err := c.start(mode)
	if err != nil {
		return nil, nil, c.executable.explained(inputsLost(err))
	}
	c.ranOnce.Store(true)
	// Replaced buffers keep their identity, so inputs is up to date.
	return c.executable.of.wrapAll(made), running, nil
}

func (c *call) runReading() ([]compute.Buffer, *Running, error) {
	values := make([]onHost, len(c.reads))
	c.into = c.into[:0]
	for i, r := range c.reads {
		memory := reflect.MakeSlice(r.slice, r.shape.Size(), r.shape.Size())
		values[i] = onHost{of: c.executable.of, shape: r.shape, flat: memory.Interface()}
		c.into = append(c.into, unsafe.Slice((*byte)(memory.UnsafePointer()), r.shape.ByteSize()))
	}
	defer func() { clear(c.into) }()
	made, err := c.call.RunInto(c.into, c.memory...)
	if err != nil {
		return nil, nil, c.executable.explained(inputsLost(err))
	}
	c.ranOnce.Store(true)
	outputs := c.executable.of.wrapAll(made)
	for i, r := range c.reads {
		outputs = slices.Insert(outputs, r.at, compute.Buffer(&values[i]))
	}
	return outputs, nil, nil
}

func (c *call) start(mode runMode) (outputs [][]*pjrt.Buffer, running *Running, err error) {
	start := c.call.Start
	switch mode {
	case waitForEnd:
		outputs, err = c.call.Run(c.memory...)
		return outputs, nil, err
	case goOnShared:
		start = c.call.StartShared
	}
	x, err := start(c.memory...)
	if err != nil {
		return nil, nil, err
	}
	outputs, x.Outputs = x.Outputs, nil
	return outputs, &Running{execution: x, replaces: len(c.options.InPlace) > 0}, nil
}

func inputsLost(err error) error {
	if errors.Is(err, pjrt.ErrArgumentsLost) {
		return fmt.Errorf("%w: %w", ErrInputsLost, err)
	}
	return err
}

func (c *calls) hostBytes() (sum int) {
	for _, s := range c.shapes {
		n, _ := s.Size() // checked by newCalls
		sum += n
	}
	return sum
}

func (c *calls) explained(err error) error { return c.executable.explained(err) }

func (c *calls) close() error {
	var errs []error
	for _, one := range c.idle {
		errs = append(errs, one.call.Close())
	}
	c.idle = nil
	return errors.Join(append(errs, c.executable.close())...)
}
