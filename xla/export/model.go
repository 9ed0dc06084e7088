package export

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/xla"
)

// Model is a compiled program with its state on a runtime's first device. Close it before the runtime.
//
// Goroutines may share it. Runs that replace state, as training steps, wait for each other.
type Model struct {
	program  Program
	runtime  *xla.Runtime
	compiled *xla.Program
	sizes    map[int]*xla.Program // by batch size, with compiled, or nil
	replaces bool
	host     []string // inputs from the host, in order
	uses     gate.Gate
	buffers  []compute.Buffer
}

var errClosed = fmt.Errorf("the model is %w", xla.ErrClosed)

// Compile compiles the program for the first device, checks its inputs and outputs, and copies the weights. State
// without weights is an error.
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
		return nil, fmt.Errorf("no values for the state: it has %d; set Weights", n)
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
		if v.Role == Batch && v.Shape.DType.Bits() >= 8 {
			built.Host, m.host = append(built.Host, i), append(m.host, v.Name)
		}
	}
	for i, v := range p.Outputs {
		if v.Replaces != "" {
			built.InPlace[i] = place[v.Replaces]
			m.replaces = true
		} else {
			built.Read = append(built.Read, i)
		}
	}
	if m.compiled, err = on.CompileStableHLO(context.Background(), p.Name, p.Text, built); err != nil {
		return m, err
	}
	if err := p.sameAs(m.compiled, p.Inputs, p.Outputs); err != nil {
		return m, err
	}
	if len(p.Sizes) > 0 {
		m.sizes = map[int]*xla.Program{p.rows(): m.compiled}
	}
	for _, size := range slices.Sorted(maps.Keys(p.Sizes)) {
		program, err := on.CompileStableHLO(context.Background(), p.Name, p.Sizes[size], xla.Built{Host: built.Host, Read: built.Read})
		if err == nil {
			m.sizes[size] = program
			err = p.sameAs(program, sized(p.Inputs, size), sized(p.Outputs, size))
		}
		if err != nil {
			return m, fmt.Errorf("for a batch of %d: %w", size, err)
		}
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

func (p *Program) sameAs(compiled *xla.Program, inputs, outputs []Value) error {
	in, out, err := compiled.Signature()
	if err != nil {
		return err
	}
	return errors.Join(same("input", inputs, in), same("output", outputs, out))
}

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

func put(on *xla.Runtime, t *tensors.Tensor) (b compute.Buffer, err error) {
	var putErr error
	err = t.ConstFlatData(func(flat any) { b, putErr = on.BufferFromFlatData(0, flat, t.Shape()) })
	return b, xla.WrapError(errors.Join(err, putErr))
}

func fetch(b compute.Buffer, s shapes.Shape) (*tensors.Tensor, error) {
	t := tensors.FromShape(s)
	var fetchErr error
	err := t.MutableFlatData(func(flat any) { fetchErr = b.ToFlatData(flat) })
	return t, xla.WrapError(errors.Join(err, fetchErr))
}

// Run runs the program once. batch has a tensor for each input of role Batch, by name; outputs has one for each output
// that is not state, on the host. A failed run leaves the state, unless the error wraps [xla.ErrInputsLost].
//
// With [Program.Sizes], a batch has 1 example up to the largest size. Copies of the last example pad it to the next
// size; their outputs are removed.
func (m *Model) Run(batch map[string]*tensors.Tensor) (outputs map[string]*tensors.Tensor, err error) {
	if outputs, err = m.run(batch); err != nil {
		return nil, fmt.Errorf("export: run %s: %w", m.program.Name, err)
	}
	return outputs, nil
}

func (m *Model) run(batch map[string]*tensors.Tensor) (outputs map[string]*tensors.Tensor, err error) {
	program, values := m.compiled, m.program.Outputs
	rows, size := 0, 0
	if m.sizes != nil {
		if batch, rows, size, err = m.fill(batch); err != nil {
			return nil, err
		}
		program, values = m.sizes[size], sized(values, size)
	} else if err := checkTensors("the batch", batch, m.program.inputs(Batch)); err != nil {
		return nil, err
	}
	made, err := m.runOn(program, batch)
	if err != nil {
		return nil, err
	}
	outputs = map[string]*tensors.Tensor{}
	for _, v := range values {
		if v.Replaces != "" {
			continue
		}
		t, fetchErr := fetch(made[0], v.Shape)
		err = errors.Join(err, fetchErr, made[0].Finalize())
		if rows < size && err == nil {
			t, err = resized(t, rows)
		}
		outputs[v.Name], made = t, made[1:]
	}
	return outputs, err
}

func (m *Model) fill(batch map[string]*tensors.Tensor) (filled map[string]*tensors.Tensor, rows, size int, err error) {
	want := m.program.inputs(Batch)
	sizes := slices.Sorted(maps.Keys(m.sizes))
	for name := range want {
		if t := batch[name]; t != nil && len(t.Shape().Dimensions) > 0 {
			rows = max(rows, t.Shape().Dimensions[0])
		}
	}
	at := slices.IndexFunc(sizes, func(n int) bool { return rows <= n })
	if rows < 1 || at < 0 {
		return nil, 0, 0, fmt.Errorf("the batch has %d examples, expected 1 to %d: it was exported for the sizes %v", rows, sizes[len(sizes)-1], sizes)
	}
	for name, v := range want {
		v.Shape = withRows(v.Shape, rows)
		want[name] = v
	}
	if err := checkTensors("the batch", batch, want); err != nil {
		return nil, 0, 0, err
	}
	if size = sizes[at]; rows == size {
		return batch, rows, size, nil
	}
	filled = map[string]*tensors.Tensor{}
	for name, t := range batch {
		if filled[name], err = resized(t, size); err != nil {
			return nil, 0, 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	return filled, rows, size, nil
}

func (m *Model) runOn(program *xla.Program, batch map[string]*tensors.Tensor) (made []compute.Buffer, err error) {
	if m.uses.Enter(context.Background(), m.replaces) != nil {
		return nil, errClosed
	}
	defer m.uses.Leave(m.replaces)
	inputs, host := slices.Clone(m.buffers), make([]any, len(m.host))
	for i, name := range m.host {
		if err := batch[name].ConstFlatData(func(flat any) { host[i] = flat }); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	defer func() {
		for i, v := range m.program.Inputs {
			if v.Role == Batch && inputs[i] != nil {
				err = errors.Join(err, inputs[i].Finalize())
			}
		}
	}()
	for i, v := range m.program.Inputs {
		if v.Role != Batch || slices.Contains(m.host, v.Name) {
			continue
		}
		if inputs[i], err = put(m.runtime, batch[v.Name]); err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	if made, err = program.Run(inputs, host); err != nil {
		return nil, err
	}
	for i, v := range m.program.Inputs {
		if m.replaces && v.Role == State {
			m.buffers[i] = inputs[i]
		}
	}
	return made, nil
}

// State copies the state's values to the host, by name.
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
		t, err := fetch(m.buffers[i], v.Shape)
		if err != nil {
			return nil, fmt.Errorf("export: state of %s: %s: %w", m.program.Name, v.Name, err)
		}
		state[v.Name] = t
	}
	return state, nil
}

// Close waits for running calls and frees the program and its state. Later use is [xla.ErrClosed]; a second Close does
// nothing.
func (m *Model) Close() error {
	return m.uses.Close(m.free)
}

func (m *Model) free() error {
	err := m.compiled.Close()
	for _, program := range m.sizes {
		if program != m.compiled {
			err = errors.Join(err, program.Close())
		}
	}
	for _, b := range m.buffers {
		if b != nil {
			err = errors.Join(err, b.Finalize())
		}
	}
	return gate.Once(err)
}
