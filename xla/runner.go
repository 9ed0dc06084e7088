package xla

import (
	"errors"
	"fmt"
	"slices"

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

// Running is a run that may go on. Nil stands for one that is over.
type Running struct {
	program   string
	execution *pjrt.Execution
	replaces  bool
	err       error
}

// Wait waits for the end of the run and tells what went wrong, if anything. Each run is to be waited for; a second Wait
// gives the same. What the run was to write over is lost if it fails: the error then wraps [ErrInputsLost].
func (r *Running) Wait() error {
	if r == nil || r.execution == nil {
		return r.failure()
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

func (r *Running) failure() error {
	if r == nil {
		return nil
	}
	return r.err
}

// Over tells whether the run has ended, well or not.
func (r *Running) Over() bool {
	if r == nil || r.execution == nil {
		return true
	}
	for _, done := range r.execution.Done {
		if ready, err := done.Ready(); err == nil && !ready {
			return false
		}
	}
	return true
}

// call runs a program of PJRT: one call of C, whatever the number of its inputs.
type call struct {
	executable *executable
	call       *pjrt.Call
	devices    int
	constants  int            // how many large ones the program has
	set        []*pjrt.Buffer // what the call has as arguments, device after device
	shapes     []pjrt.Shape   // of a device's host inputs
	memory     [][]byte       // theirs, device after device, for the time of a run
	proven     bool           // it ran to its end once
	replaces   bool           // it writes over some of its inputs
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

func (e *executable) newCall(b Built, place Placement) (*call, error) {
	n := place.Mesh.Devices()
	c := &call{
		executable: e, devices: n, replaces: len(b.InPlace) > 0,
		set: make([]*pjrt.Buffer, n*len(e.module.Parameters)), memory: make([][]byte, n*len(b.Host)),
	}
	options := pjrt.CallOptions{InPlace: b.InPlace}
	for _, i := range b.Host {
		s, err := e.module.Parameters[i].Part()
		if err != nil {
			return nil, err
		}
		c.shapes = append(c.shapes, fromGoMLX(s))
		options.Host = append(options.Host, pjrt.HostInput{Argument: i, Shape: fromGoMLX(s)})
	}
	var err error
	if c.call, err = e.pjrt.NewCall(options); err != nil {
		return nil, err
	}
	if err := c.setConstants(); err != nil {
		return nil, errors.Join(err, c.call.Close())
	}
	if written, err := e.inPlaceBytes(b); err != nil || written > copiedAtFirst {
		return c, err
	}
	if err = c.call.KeepArguments(true); err != nil {
		return nil, errors.Join(err, c.call.Close())
	}
	return c, nil
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
	if !c.proven {
		how = toItsEnd
	}
	made, running, err := c.start(how)
	if err != nil {
		return nil, nil, c.executable.explained(lost(err))
	}
	if !c.proven {
		c.proven = true
		if err := c.call.KeepArguments(false); err != nil {
			return nil, nil, err
		}
	}
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
	return outputs, &Running{execution: x, replaces: c.replaces}, nil
}

// lost marks an error of PJRT's by which arguments were lost.
func lost(err error) error {
	if errors.Is(err, pjrt.ErrArgumentsLost) {
		return fmt.Errorf("%w: %w", ErrInputsLost, err)
	}
	return err
}

// hostBytes is how much a device is sent from the host in a run.
func (c *call) hostBytes() (sum int) {
	for _, s := range c.shapes {
		n, _ := s.Size() // it was checked when the call was made
		sum += n
	}
	return sum
}

func (c *call) close() error { return errors.Join(c.call.Close(), c.executable.close()) }

// plain runs a program of another backend, which knows no inputs that are replaced in place.
type plain struct {
	on    *Runtime
	exec  compute.Executable
	built Built
}

func (p *plain) run(inputs []compute.Buffer, host []any, _ way) (rest []compute.Buffer, _ *Running, err error) {
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
