package strategies

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/xla"
)

// Jit compiles each step to one program and runs it on the first device of a runtime.
func Jit(on *xla.Runtime) Strategy {
	autodiff.Install()
	return &jit{on}
}

type jit struct{ runtime *xla.Runtime }

func (j *jit) String() string        { return "jit" }
func (j *jit) Runtime() *xla.Runtime { return j.runtime }

func (j *jit) Put(t *tensors.Tensor) (Buffer, error) {
	if j.runtime.IsFinalized() {
		return nil, fmt.Errorf("strategies: jit: move %s to the device: the runtime is %w", t.Shape(), xla.ErrClosed)
	}
	b, err := t.DonateBuffer(j.runtime, 0)
	if err != nil {
		return nil, fmt.Errorf("strategies: jit: move %s to the device: %w", t.Shape(), xla.WrapError(err))
	}
	return b, nil
}

func (j *jit) Fetch(b Buffer) (*tensors.Tensor, error) {
	if b == nil { // the runtime would panic
		return nil, errors.New("strategies: jit: fetch: there is no value (nil)")
	}
	shape, err := j.runtime.BufferShape(b)
	if err != nil {
		return nil, fmt.Errorf("strategies: jit: fetch: %w", xla.WrapError(err))
	}
	t := tensors.FromShape(shape)
	var copyErr error
	err = t.MutableFlatData(func(flat any) { copyErr = j.runtime.BufferToFlatData(b, flat) })
	if err == nil {
		err = copyErr
	}
	if err != nil {
		return nil, fmt.Errorf("strategies: jit: fetch %s: %w", shape, xla.WrapError(err))
	}
	return t, nil
}

func (j *jit) Free(buffers ...Buffer) error {
	var first error
	for _, b := range buffers {
		if b == nil {
			continue
		}
		if err := j.runtime.BufferFinalize(b); err != nil && first == nil {
			first = fmt.Errorf("strategies: jit: free: %w", xla.WrapError(err))
		}
	}
	return first
}

func (j *jit) Compile(s Step) (Program, error) {
	p := &jitProgram{jit: j, name: s.Name, batch: s.Batch}
	program, err := j.runtime.Compile(s.Name, func(g *graph.Graph) xla.Built {
		batch := make([]*graph.Node, len(s.Batch))
		for i, in := range s.Batch {
			batch[i] = graph.Parameter(g, "batch:"+in.Name, in.Shape)
		}
		built := s.Build(g, batch)
		p.inputs = make([]int, g.NumParameters())
		p.state, p.changed = len(built.State), make([]bool, len(built.State))
		out := xla.Built{InPlace: map[int]int{}, Block: s.Block}
		if !small(s.Batch, built.State) {
			out.Block = 1
		}
		for _, n := range batch {
			p.inputs[n.GetParameterHandle()] = fromHost
			out.Host = append(out.Host, int(n.GetParameterHandle()))
		}
		for i, slot := range built.State {
			input := int(slot.Parameter.GetParameterHandle())
			p.inputs[input] = i
			if slot.New == nil {
				continue
			}
			if !slot.New.Shape().Equal(slot.Parameter.Shape()) {
				panic(fmt.Errorf("value %s of the state would change its shape from %s to %s",
					slot.Parameter.GetParameterName(), slot.Parameter.Shape(), slot.New.Shape()))
			}
			out.InPlace[len(out.Outputs)] = input
			out.Outputs = append(out.Outputs, slot.New)
			p.changed[i] = true
		}
		out.Outputs = append(out.Outputs, built.Outputs...)
		return out
	})
	if err != nil {
		return nil, err
	}
	p.program, p.buffers = program, make([]Buffer, len(p.inputs))
	return p, nil
}

// smallStep is up to how many numbers, of the batch and of the state, a step is made in blocks. A larger one takes so long
// that the call of its program, some 10 us, costs nothing, and XLA's loop may make it slower.
const smallStep = 1 << 16

func small(batch []Input, state []Slot) bool {
	n := 0
	for _, in := range batch {
		n += in.Shape.Size()
	}
	for _, slot := range state {
		n += slot.Parameter.Shape().Size()
	}
	return n <= smallStep
}

// jitProgram is a step as one program whose inputs are state and batch, in the order in which the graph came to need
// them, and whose outputs are the changed state and then the rest.
type jitProgram struct {
	*jit
	name    string
	program *xla.Program
	batch   []Input
	state   int    // how many values the state has
	inputs  []int  // for each input of the program: the state's value, or fromHost
	changed []bool // which of the state's values the step changes
	// mu guards the rest. buffers and host are those of the run that is being started.
	mu      sync.Mutex
	buffers []Buffer
	host    []any
	// slots are used in turns: while one run goes on, the next is made ready.
	slots [2]slot
	next  int
}

const fromHost = -1

func (p *jitProgram) Block() int { return p.program.Block() }

func (p *jitProgram) Start(state []Buffer, batches [][]data.Array) (changed, outputs []Buffer, running Running, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(batches); n < 1 || n > p.Block() {
		return nil, nil, nil, fmt.Errorf("strategies: jit: run %s: %d batches at once: the program takes up to %d", p.name, n, p.Block())
	}
	for _, batch := range batches {
		if err := p.check(state, batch); err != nil {
			return nil, nil, nil, err
		}
	}
	slot := &p.slots[p.next]
	p.next = 1 - p.next
	slot.end()
	host := p.host[:0]
	if p.Block() > 1 {
		host = slot.stack(p.batch, batches, p.Block())
	} else {
		for _, a := range batches[0] {
			host = append(host, a.Flat)
		}
		p.host = host
		defer clear(host)
	}
	changed, outputs, slot.running, err = p.run(state, host, len(batches))
	return changed, outputs, slot.running, err
}

// check holds the arguments of a step against what the program was compiled for.
func (p *jitProgram) check(state []Buffer, batch []data.Array) error {
	if len(state) != p.state || len(batch) != len(p.batch) {
		return fmt.Errorf("strategies: jit: run %s: expected %d values of state and %d fields of a batch, got %d and %d",
			p.name, p.state, len(p.batch), len(state), len(batch))
	}
	for i, a := range batch {
		if in := p.batch[i]; !in.Takes(a) {
			return fmt.Errorf("strategies: jit: run %s: %s of the batch: expected %s, got %T of dimensions %v", p.name, in.Name, in.Shape, a.Flat, a.Dims)
		}
	}
	return nil
}

// run runs the program on the state.
func (p *jitProgram) run(state []Buffer, host []any, n int) (changed, outputs []Buffer, running Running, err error) {
	for i, from := range p.inputs {
		p.buffers[i] = nil
		if from != fromHost {
			p.buffers[i] = state[from]
		}
	}
	outputs, started, err := p.program.Start(p.buffers, host, n)
	if err != nil {
		return nil, nil, nil, stateLost(err)
	}
	changed = make([]Buffer, p.state)
	for i, from := range p.inputs {
		if from != fromHost && p.changed[from] {
			changed[from] = p.buffers[i]
		}
	}
	return changed, outputs, jitRunning{started}, nil
}

type jitRunning struct{ *xla.Running }

func (r jitRunning) Wait() error { return stateLost(r.Running.Wait()) }

func stateLost(err error) error {
	if errors.Is(err, xla.ErrInputsLost) {
		return fmt.Errorf("strategies: jit: %w: %w", ErrStateLost, err)
	}
	return err
}

// slot is a run that may go on, and the memory that it uses.
type slot struct {
	running Running
	stacks  []*stack // of the batch's fields, for a block
	host    []any    // their elements
}

// end waits for the run, if there is one. Its error is told to whoever started it.
func (s *slot) end() {
	if s.running != nil {
		_ = s.running.Wait()
		s.running = nil
	}
}

// stack lays the batches of a block one behind the other.
func (s *slot) stack(inputs []Input, batches [][]data.Array, k int) []any {
	if s.stacks == nil {
		for _, in := range inputs {
			stack := newStack(in.Shape, k)
			s.stacks, s.host = append(s.stacks, stack), append(s.host, stack.flat)
		}
	}
	for i, batch := range batches {
		for j, a := range batch {
			s.stacks[j].put(i, a.Flat)
		}
	}
	return s.host
}

// stack is the memory in which batches lie one behind the other.
type stack struct {
	flat any           // a slice of the elements
	rows reflect.Value // the same
	row  int           // elements in a batch
}

func newStack(shape shapes.Shape, k int) *stack {
	rows := reflect.MakeSlice(reflect.SliceOf(shape.DType.GoType()), k*shape.Size(), k*shape.Size())
	return &stack{rows.Interface(), rows, shape.Size()}
}

func (s *stack) put(i int, flat any) {
	reflect.Copy(s.rows.Slice(i*s.row, (i+1)*s.row), reflect.ValueOf(flat))
}

func (p *jitProgram) StableHLO() string { return p.program.StableHLO() }

func (p *jitProgram) CompileTime() time.Duration { return p.program.CompileTime() }

func (p *jitProgram) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		p.slots[i].end()
	}
	return p.program.Close()
}

// InputOf gives the graph's view of a field of a batch.
func InputOf(f data.Field) (Input, error) {
	if err := f.Array.Check(); err != nil {
		return Input{}, fmt.Errorf("strategies: field %q: %w", f.Name, err)
	}
	return Input{f.Name, shapes.Make(DTypeOf(f.Array), f.Array.Dims...)}, nil
}

// Takes tells whether an array is of the input's type and dimensions.
func (in Input) Takes(a data.Array) bool {
	return DTypeOf(a) == in.Shape.DType && slices.Equal(a.Dims, in.Shape.Dimensions)
}

// DTypeOf is the type of an array's elements.
func DTypeOf(a data.Array) dtypes.DType {
	switch a.Flat.(type) {
	case []bool:
		return dtypes.Bool
	case []int8:
		return dtypes.Int8
	case []int16:
		return dtypes.Int16
	case []int32:
		return dtypes.Int32
	case []int64:
		return dtypes.Int64
	case []uint8:
		return dtypes.Uint8
	case []uint16:
		return dtypes.Uint16
	case []uint32:
		return dtypes.Uint32
	case []uint64:
		return dtypes.Uint64
	case []float32:
		return dtypes.Float32
	case []float64:
		return dtypes.Float64
	}
	return dtypes.InvalidDType
}
