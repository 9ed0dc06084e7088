package xla

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// runner is how a program runs: on PJRT, or on another backend.
type runner interface {
	run(inputs []compute.Buffer, host []any, how way) (outputs []compute.Buffer, running *Running, err error)
	close() error
}

// way is how long a run is waited for, and what it has of the host's memory.
type way int

const (
	toItsEnd way = iota // the memory itself
	onCopies            // copies of it; the run may go on
	onShared            // the memory itself; the run may go on
)

// Running is a run that may go on. Nil stands for one that is over. It may be used by any number of goroutines.
type Running struct {
	program   string
	mu        sync.Mutex // guards the rest
	execution *pjrt.Execution
	replaces  bool
	err       error
}

// Wait waits for the end of the run and tells what went wrong, if anything. Each run is to be waited for; a second Wait
// gives the same. What the run was to write over is lost if it fails: the error then wraps [ErrInputsLost].
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

// Over tells whether the run has ended, well or not.
func (r *Running) Over() bool {
	if r == nil {
		return true
	}
	if !r.mu.TryLock() {
		return false // somebody waits for it
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

// calls runs a program of PJRT, for any number of goroutines: each run has a call of its own, and there come to be as many as
// there were runs at a time.
type calls struct {
	executable *executable
	devices    int
	options    pjrt.CallOptions
	shapes     []pjrt.Shape // of a device's host inputs
	copies     bool         // a first run copies what it is to write over
	proven     atomic.Bool  // one ran to its end

	mu   sync.Mutex
	idle []*call // that which was used last is taken first: it has the most of its arguments set
}

// call is one call of C, whatever the number of its inputs.
type call struct {
	*calls
	call      *pjrt.Call
	set       []*pjrt.Buffer // what the call has as arguments, device after device
	constants int            // how many large ones the program has
	memory    [][]byte       // of the host inputs, device after device, for the time of a run
	keeps     bool           // it copies what it is to write over
}

// copiedAtFirst is up to how many bytes a first run copies what it is to write over. More would, if anything does, not fit
// into memory because of the copy.
const copiedAtFirst = 256 << 20

// inPlaceBytes is how much a device has of what the program writes over.
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
	c := &calls{executable: e, devices: place.Mesh.Devices(), options: pjrt.CallOptions{InPlace: b.InPlace}}
	for _, i := range b.Host {
		s, err := e.module.Parameters[i].Part()
		if err != nil {
			return nil, err
		}
		c.shapes = append(c.shapes, fromGoMLX(s))
		c.options.Host = append(c.options.Host, pjrt.HostInput{Argument: i, Shape: fromGoMLX(s)})
	}
	written, err := e.inPlaceBytes(b)
	if err != nil {
		return nil, err
	}
	c.copies = written <= copiedAtFirst
	one, err := c.take() // what is wrong with it is to be known now
	if err != nil {
		return nil, err
	}
	c.give(one)
	return c, nil
}

// take gives a call that nobody uses.
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
	if keep := c.copies && !c.proven.Load(); keep != one.keeps {
		if err := one.call.KeepArguments(keep); err != nil {
			return nil, errors.Join(err, one.call.Close())
		}
		one.keeps = keep
	}
	return one, nil
}

func (c *calls) give(one *call) {
	c.mu.Lock()
	c.idle = append(c.idle, one)
	c.mu.Unlock()
}

func (c *calls) run(inputs []compute.Buffer, host []any, how way) ([]compute.Buffer, *Running, error) {
	one, err := c.take()
	if err != nil {
		return nil, nil, c.executable.explained(err)
	}
	defer c.give(one)
	return one.run(inputs, host, how)
}

func (c *call) run(inputs []compute.Buffer, host []any, how way) ([]compute.Buffer, *Running, error) {
	own, n := len(c.set)/c.devices-c.constants, len(c.set)/c.devices
	if len(inputs) != own*c.devices {
		return nil, nil, fmt.Errorf("expected %d inputs, got %d", own*c.devices, len(inputs))
	}
	for i, input := range inputs {
		if input == nil {
			continue
		}
		b, err := bufferOf(input)
		if err != nil {
			return nil, nil, fmt.Errorf("input %d: %w", i, err)
		}
		// What the caller gives stands before the constants.
		if at := i/own*n + i%own; c.set[at] != b.Buffer {
			if err := c.call.Set(i/own, i%own, b.Buffer); err != nil {
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
	if !c.proven.Load() {
		how = toItsEnd
	}
	made, running, err := c.start(how)
	if err != nil {
		return nil, nil, c.executable.explained(lost(err))
	}
	c.proven.Store(true)
	// A buffer that is replaced stays the same buffer, so the inputs are what they are to be.
	return c.executable.of.wrapAll(made), running, nil
}

func (c *call) start(how way) (outputs [][]*pjrt.Buffer, running *Running, err error) {
	start := c.call.Start
	switch how {
	case toItsEnd:
		outputs, err = c.call.Run(c.memory...)
		return outputs, nil, err
	case onShared:
		start = c.call.StartShared
	}
	x, err := start(c.memory...)
	if err != nil {
		return nil, nil, err
	}
	outputs, x.Outputs = x.Outputs, nil
	return outputs, &Running{execution: x, replaces: len(c.options.InPlace) > 0}, nil
}

// lost marks an error of PJRT's by which arguments were lost.
func lost(err error) error {
	if errors.Is(err, pjrt.ErrArgumentsLost) {
		return fmt.Errorf("%w: %w", ErrInputsLost, err)
	}
	return err
}

// hostBytes is how much a device is sent from the host in a run.
func (c *calls) hostBytes() (sum int) {
	for _, s := range c.shapes {
		n, _ := s.Size() // it was checked when the call was made
		sum += n
	}
	return sum
}

// close is for when no run goes on: see [Program.Close].
func (c *calls) close() error {
	var errs []error
	for _, one := range c.idle {
		errs = append(errs, one.call.Close())
	}
	c.idle = nil
	return errors.Join(append(errs, c.executable.close())...)
}

// plain runs a program of another backend, which knows no inputs that are replaced in place. Its runs wait for each other.
type plain struct {
	on    *Runtime
	exec  compute.Executable
	built Built
	mu    sync.Mutex
}

func (p *plain) run(inputs []compute.Buffer, host []any, _ way) (rest []compute.Buffer, _ *Running, err error) {
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
