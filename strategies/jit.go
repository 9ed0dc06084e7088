package strategies

import (
	"errors"
	"fmt"
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
		for i, n := range batch {
			p.inputs[n.GetParameterHandle()] = -1 - i
		}
		out := xla.Built{InPlace: map[int]int{}}
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
			p.changed = append(p.changed, i)
		}
		p.state = len(built.State)
		out.Outputs = append(out.Outputs, built.Outputs...)
		return out
	})
	if err != nil {
		return nil, err
	}
	p.program = program
	return p, nil
}

// jitProgram is a step as one program whose inputs are state and batch, in the order in which the graph came to need
// them, and whose outputs are the changed state and then the rest.
type jitProgram struct {
	*jit
	name    string
	program *xla.Program
	batch   []Input
	state   int   // how many values the state has
	inputs  []int // for each input of the program: the state's value i, or field -1-i of the batch
	changed []int // the state's values that the first outputs replace
}

func (p *jitProgram) Run(state []Buffer, batch []data.Array) (changed, outputs []Buffer, err error) {
	if len(state) != p.state || len(batch) != len(p.batch) {
		return nil, nil, fmt.Errorf("strategies: jit: run %s: expected %d values of state and %d fields of a batch, got %d and %d",
			p.name, p.state, len(p.batch), len(state), len(batch))
	}
	sent := make([]Buffer, len(batch))
	defer func() {
		if freeErr := p.Free(sent...); err == nil && freeErr != nil {
			err = freeErr
		}
	}()
	for i, a := range batch {
		sent[i], err = p.runtime.BufferFromFlatData(0, a.Flat, p.batch[i].Shape)
		if err != nil {
			return nil, nil, fmt.Errorf("strategies: jit: send %s of the batch: %w", p.batch[i].Name, xla.WrapError(err))
		}
	}
	inputs := make([]Buffer, len(p.inputs))
	for i, from := range p.inputs {
		if from >= 0 {
			inputs[i] = state[from]
		} else {
			inputs[i] = sent[-1-from]
		}
	}
	results, err := p.program.Run(inputs)
	if errors.Is(err, xla.ErrInputsLost) {
		err = fmt.Errorf("strategies: jit: %w: %w", ErrStateLost, err)
	}
	if err != nil {
		return nil, nil, err
	}
	changed = make([]Buffer, p.state)
	for i, to := range p.changed {
		changed[to] = results[i]
	}
	return changed, results[len(p.changed):], nil
}

func (p *jitProgram) StableHLO() string { return p.program.StableHLO() }

func (p *jitProgram) CompileTime() time.Duration { return p.program.CompileTime() }

func (p *jitProgram) Close() error { return p.program.Close() }

// InputOf gives the graph's view of a field of a batch.
func InputOf(f data.Field) (Input, error) {
	if err := f.Array.Check(); err != nil {
		return Input{}, fmt.Errorf("strategies: field %q: %w", f.Name, err)
	}
	return Input{f.Name, shapes.Make(DTypeOf(f.Array), f.Array.Dims...)}, nil
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
