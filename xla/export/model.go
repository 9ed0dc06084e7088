package export

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/xla"
)

// Model is a compiled program with its state on the first device of a runtime. Close frees both, before the runtime is
// closed.
//
// It may be used by any number of goroutines. Runs go on beside each other, but for those of a program that replaces
// state, as a training step does: each of these waits until the state is its own. Close waits for what runs, and later
// use is [xla.ErrClosed].
type Model struct {
	program  Program
	runtime  *xla.Runtime
	compiled *xla.Program
	replaces bool             // the program writes over some of its state
	uses     gate.Gate        // of the state
	buffers  []compute.Buffer // of the inputs; nil for the batch
}

var errClosed = fmt.Errorf("the model is %w", xla.ErrClosed)

// Compile compiles the program for the first device and puts its weights there; without weights it is [ErrNoWeights],
// unless it needs none. That the compiled program has the inputs and outputs that it claims is checked here.
func (p *Program) Compile(on *xla.Runtime) (*Model, error) {
	m, err := p.compile(on)
	if err != nil {
		return nil, fmt.Errorf("export: compile %s: %w", p.Name, err)
	}
	return m, nil
}

func (p *Program) compile(on *xla.Runtime) (m *Model, err error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if n := len(p.inputs(State)); p.Weights == nil && n > 0 {
		return nil, fmt.Errorf("%w: it has %d; set Weights", ErrNoWeights, n)
	}
	m = &Model{program: *p, runtime: on, buffers: make([]compute.Buffer, len(p.Inputs))}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	built := xla.Built{InPlace: map[int]int{}}
	place := map[string]int{}
	for i, v := range p.Inputs {
		place[v.Name] = i
	}
	for i, v := range p.Outputs {
		if v.Replaces != "" {
			built.InPlace[i] = place[v.Replaces]
			m.replaces = true
		}
	}
	if m.compiled, err = on.CompileStableHLO(p.Name, p.Text, built); err != nil {
		return m, err
	}
	inputs, outputs, err := m.compiled.Signature()
	if err == nil {
		err = errors.Join(same("input", p.Inputs, inputs), same("output", p.Outputs, outputs))
	}
	if err != nil {
		return m, err
	}
	for i, v := range p.Inputs {
		if v.Role == State {
			if m.buffers[i], err = put(on, p.Weights[v.Name]); err != nil {
				return m, fmt.Errorf("%s: %w", v.Name, err)
			}
		}
	}
	return m, nil
}

// same compares the manifest's values with the program's.
func same(what string, values []Value, has []shapes.Shape) error {
	if len(values) != len(has) {
		return fmt.Errorf("%w: the program has %d %ss, the manifest %d", ErrDamaged, len(has), what, len(values))
	}
	for i, v := range values {
		if !v.Shape.Equal(has[i]) {
			return fmt.Errorf("%w: %s %d of the program is %s, in the manifest it is %q, %s", ErrDamaged, what, i, has[i], v.Name, v.Shape)
		}
	}
	return nil
}

// put copies a tensor of the host to the first device.
func put(on *xla.Runtime, t *tensors.Tensor) (b compute.Buffer, err error) {
	var putErr error
	err = t.ConstFlatData(func(flat any) { b, putErr = on.BufferFromFlatData(0, flat, t.Shape()) })
	return b, xla.WrapError(errors.Join(err, putErr))
}

// fetch copies a value to the host.
func fetch(on *xla.Runtime, b compute.Buffer, s shapes.Shape) (*tensors.Tensor, error) {
	t := tensors.FromShape(s)
	var fetchErr error
	err := t.MutableFlatData(func(flat any) { fetchErr = b.ToFlatData(flat) })
	return t, xla.WrapError(errors.Join(err, fetchErr))
}

// Run makes one run: batch has a tensor for each input with the role Batch, by name, and outputs one for each output
// but the state, on the host. State that the program replaces is replaced. If a run fails, the state is as it was,
// unless the error wraps [xla.ErrInputsLost].
func (m *Model) Run(batch map[string]*tensors.Tensor) (outputs map[string]*tensors.Tensor, err error) {
	if outputs, err = m.run(batch); err != nil {
		return nil, fmt.Errorf("export: run %s: %w", m.program.Name, err)
	}
	return outputs, nil
}

func (m *Model) run(batch map[string]*tensors.Tensor) (outputs map[string]*tensors.Tensor, err error) {
	if err := checkTensors("the batch", batch, m.program.inputs(Batch)); err != nil {
		return nil, err
	}
	made, err := m.runOn(batch)
	if err != nil {
		return nil, err
	}
	outputs = map[string]*tensors.Tensor{}
	for _, v := range m.program.Outputs {
		if v.Replaces != "" {
			continue
		}
		t, fetchErr := fetch(m.runtime, made[0], v.Shape)
		err = errors.Join(err, fetchErr, made[0].Finalize())
		outputs[v.Name], made = t, made[1:]
	}
	return outputs, err
}

// runOn puts the batch on the device for the time of a run.
func (m *Model) runOn(batch map[string]*tensors.Tensor) (made []compute.Buffer, err error) {
	if m.uses.Enter(context.Background(), m.replaces) != nil {
		return nil, errClosed
	}
	defer m.uses.Leave(m.replaces)
	inputs := slices.Clone(m.buffers)
	defer func() {
		for i, v := range m.program.Inputs {
			if v.Role == Batch && inputs[i] != nil {
				err = errors.Join(err, inputs[i].Finalize())
			}
		}
	}()
	for i, v := range m.program.Inputs {
		if v.Role != Batch {
			continue
		}
		if inputs[i], err = put(m.runtime, batch[v.Name]); err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	if made, err = m.compiled.Run(inputs, nil); err != nil {
		return nil, err
	}
	for i, v := range m.program.Inputs {
		if m.replaces && v.Role == State {
			m.buffers[i] = inputs[i]
		}
	}
	return made, nil
}

// State copies the values of the state to the host, by name.
func (m *Model) State() (map[string]*tensors.Tensor, error) {
	if m.uses.Read(context.Background()) != nil {
		return nil, fmt.Errorf("export: state of %s: %w", m.program.Name, errClosed)
	}
	defer m.uses.DoneReading()
	state := map[string]*tensors.Tensor{}
	for i, v := range m.program.Inputs {
		if v.Role != State {
			continue
		}
		t, err := fetch(m.runtime, m.buffers[i], v.Shape)
		if err != nil {
			return nil, fmt.Errorf("export: state of %s: %s: %w", m.program.Name, v.Name, err)
		}
		state[v.Name] = t
	}
	return state, nil
}

// Close waits for what runs, and frees the program and its state; a second Close does nothing.
func (m *Model) Close() error {
	if !m.uses.Close() {
		return nil
	}
	err := m.compiled.Close()
	for _, b := range m.buffers {
		if b != nil {
			err = errors.Join(err, b.Finalize())
		}
	}
	return gate.Once(err)
}
