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

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

type runner interface {
	run(inputs []compute.Buffer, host []any, mode runMode) (outputs []compute.Buffer, running *Running, err error)
	close() error
}

type runMode int

const (
	waitForEnd runMode = iota // directly
	goOnCopied                // from a copy, may outlast
	goOnShared                // directly, may outlast
)

// Running is a run that may be in progress; nil has ended. Goroutines may share it.
type Running struct {
	program   string
	mu        sync.Mutex // guards the rest
	execution *pjrt.Execution
	replaces  bool
	err       error
}

// Wait waits for the run and returns its error. Call it for each run; it may be repeated. A failed run that replaces
// inputs loses them: the error wraps [ErrInputsLost].
func (r *Running) Wait() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.execution == nil {
		return r.err
	}
	err := r.execution.Await()
	err = errors.Join(err, r.execution.Close())
	r.execution = nil
	if err == nil {
		return nil
	}
	if r.replaces {
		err = fmt.Errorf("%w: %w", ErrInputsLost, err)
	}
	r.err = during(err, "run %s", r.program)
	return r.err
}

// Over reports whether the run has ended.
func (r *Running) Over() bool {
	if r == nil {
		return true
	}
	if !r.mu.TryLock() {
		return false // a Wait is in progress
	}
	defer r.mu.Unlock()
	if r.execution == nil {
		return true
	}
	for _, done := range r.execution.Done {
		if ready, err := done.Ready(); err == nil && !ready {
			return false
		}
	}
	return true
}

type calls struct {
	executable *executable
	devices    int
	options    pjrt.CallOptions
	shapes     []pjrt.Shape // of a device's host inputs
	reads      []read
	copyFirst  bool
	ranOnce    atomic.Bool

	mu   sync.Mutex
	idle []*call // a stack: the last has most arguments set
}

type call struct {
	*calls
	call      *pjrt.Call
	set       []*pjrt.Buffer // arguments, device after device
	constants int
	memory    [][]byte // during a run
	into      [][]byte // during a run
	keeps     bool     // copies what it replaces
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

func (c *calls) giveBack(one *call) {
	c.mu.Lock()
	c.idle = append(c.idle, one)
	c.mu.Unlock()
}

func (c *calls) run(inputs []compute.Buffer, host []any, mode runMode) ([]compute.Buffer, *Running, error) {
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
		return nil, nil, c.executable.explained(lost(err))
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
		return nil, nil, c.executable.explained(lost(err))
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

func lost(err error) error {
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

func (c *calls) close() error {
	var errs []error
	for _, one := range c.idle {
		errs = append(errs, one.call.Close())
	}
	c.idle = nil
	return errors.Join(append(errs, c.executable.close())...)
}

// plain replaces nothing in place. Its runs are sequential.
type plain struct {
	on    *Runtime
	exec  compute.Executable
	built Built
	mu    sync.Mutex
}

func (p *plain) run(inputs []compute.Buffer, host []any, _ runMode) (rest []compute.Buffer, _ *Running, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(inputs)
	_, shapes := p.exec.Inputs()
	if len(all) != len(shapes) {
		return nil, nil, fmt.Errorf("expected %d inputs, got %d", len(shapes), len(all))
	}
	for i, place := range p.built.Host {
		if all[place], err = p.on.BufferFromFlatData(0, host[i], shapes[place]); err != nil {
			return nil, nil, fmt.Errorf("input %d from the host: %w", i, err)
		}
		defer func() { err = errors.Join(err, all[place].Finalize()) }()
	}
	var outputs []compute.Buffer
	if caught := graphs.Catch(func() { outputs, err = p.exec.Execute(all, nil, 0) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, nil, err
	}
	for i, b := range outputs {
		place, replaces := p.built.InPlace[i]
		if !replaces {
			rest = append(rest, b)
			continue
		}
		if freeErr := inputs[place].Finalize(); freeErr != nil {
			err = errors.Join(err, freeErr)
		}
		inputs[place] = b
	}
	return rest, nil, err
}

func (p *plain) close() error { return graphs.Catch(p.exec.Finalize) }
