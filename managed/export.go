package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/export"
)

// Export writes a step into a new folder (package export): StableHLO, names, shapes and dtypes of inputs and outputs,
// and the state's values. The batch sets the shapes. The state does not change.
//
// The program is that of [Stepper.Step] under jit. Inputs are the used fields, then the state. Outputs are the new
// state and the numbers as one float32 array "logs". GELU's error function may differ in the last bits. Export waits
// for started steps, and for another build or compilation on the state.
func (s *Stepper) Export(dir string, state *State, batch data.Batch, options ExportOptions) error {
	if err := s.export(dir, state, batch, nil, options); err != nil {
		return fmt.Errorf("managed: export: %w", err)
	}
	return nil
}

// ExportModel writes a model for inference, as [Stepper.Export]. f is built as in a [TestStep]. Outputs are its
// results, sorted by name, and its losses and metrics. Unused fields, like labels, are not inputs.
func ExportModel(dir string, state *State, batch data.Batch, f func(b *Builder) map[string]*graph.Node, options ExportOptions) error {
	if f == nil {
		return errors.New("managed: export model: the function that builds the model is nil")
	}
	var outputs map[string]*graph.Node
	s := newStepper(stepSettings{name: "model", build: func(b *Builder) { outputs = f(b) }}, nil)
	if err := s.export(dir, state, batch, func() map[string]*graph.Node { return outputs }, options); err != nil {
		return fmt.Errorf("managed: export model: %w", err)
	}
	return nil
}

type ExportOptions struct {
	// NoWeights omits the state's values.
	NoWeights bool
	// Example runs the program once and writes its inputs (the batch's data) and outputs, for
	// scripts/load_stablehlo.py.
	Example bool
	// Sizes are further batch sizes for [ExportModel], each compiled: choose a few powers of two. The loaded model
	// takes any number of examples up to the largest. The model must return a row per example and log nothing.
	Sizes []int
}

func (s *Stepper) export(dir string, state *State, batch data.Batch, outputs func() map[string]*graph.Node, options ExportOptions) error {
	if err := s.takes(state); err != nil {
		return err
	}
	x := &exporting{ExportOptions: options, outputs: outputs}
	batch, err := batch.OnHost()
	if err != nil {
		return err
	}
	inputs, err := strategies.Inputs(batch)
	if err != nil {
		return err
	}
	c := &compiled{step: s, state: state, block: 1, inputs: inputs}
	if err := s.lower(context.Background(), c, x); err != nil {
		return err
	}
	c.nameLogs(x.program.Outputs)
	for _, size := range x.Sizes {
		if err := s.exportSize(x, state, batch, size); err != nil {
			return fmt.Errorf("for a batch of %d: %w", size, err)
		}
	}
	if err := x.fill(state, batch); err != nil {
		return err
	}
	return x.program.Write(dir)
}

func (s *Stepper) exportSize(x *exporting, state *State, batch data.Batch, size int) error {
	rows, err := batch.Rows()
	if err != nil {
		return err
	}
	switch {
	case x.outputs == nil:
		return errors.New("option Sizes is only for ExportModel: a step's program has one batch size")
	case size < 1 || rows < 1:
		return fmt.Errorf("expected sizes of 1 and up, and a batch of %d that has rows", rows)
	case size == rows || x.program.Sizes[size] != "":
		return nil
	}
	other := data.Batch{Fields: slices.Clone(batch.Fields)}
	for i, f := range batch.Fields {
		from := make([]int, size)
		for k := range from {
			from[k] = k % rows
		}
		other.Fields[i].Array = f.Array.Gather(from)
	}
	inputs, err := strategies.Inputs(other)
	if err != nil {
		return err
	}
	alone := &exporting{outputs: x.outputs}
	if err := s.lower(context.Background(), &compiled{step: s, state: state, block: 1, inputs: inputs}, alone); err != nil {
		return err
	}
	p, of := &x.program, &alone.program
	for i, v := range of.Outputs {
		if d := v.Shape.Dimensions; len(of.Outputs) == len(p.Outputs) && (len(d) == 0 || d[0] != size) {
			return fmt.Errorf("output %q is %s, and for %d examples %s: expected a row for each example", v.Name, v.Shape, rows, p.Outputs[i].Shape)
		}
	}
	if p.Sizes == nil {
		p.Sizes = map[int]string{}
	}
	p.Sizes[size] = of.Text
	return nil
}

func (c *compiled) nameLogs(outputs []export.Value) {
	packed, wholes := len(c.layout) > 0, c.wholes
	for i, o := range outputs {
		switch {
		case o.Role != export.Log:
		case packed:
			packed = false
			for _, l := range c.layout {
				outputs[i].Fields = append(outputs[i].Fields, loop.Entry{Collection: l.collection, Name: l.name}.Path())
			}
		default:
			outputs[i].Role, outputs[i].Name = export.Output, wholes[0].name
			wholes = wholes[1:]
		}
	}
}

// lower adds only the step's new variables to the state.
func (s *Stepper) lower(ctx context.Context, c *compiled, x *exporting) error {
	state := c.state
	done, err := state.values.HoldStructure(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := state.values.Last.Usable(); err != nil {
		return err
	}
	x.runtime = state.values.Strategy().Runtime()
	return s.compileFor(ctx, c, x.compile)
}

type exporting struct {
	ExportOptions
	runtime *xla.Runtime
	outputs func() map[string]*graph.Node
	program export.Program
}

type notRun struct{ strategies.Program }

func (notRun) StableHLO() string { return "" }
func (notRun) Close() error      { return nil }

// compile orders inputs and outputs as jit.
func (x *exporting) compile(s strategies.Step) (strategies.Program, error) {
	p := &x.program
	module, err := x.runtime.Lower(s.Name, func(g *graph.Graph) xla.Built {
		batch, built := s.Graph(g)
		p.Inputs, p.Outputs = make([]export.Value, g.NumParameters()), nil
		for i, n := range batch {
			p.Inputs[n.GetParameterHandle()] = export.Value{Name: s.Batch[i].Name, Role: export.Batch, Shape: n.Shape()}
		}
		out := xla.Built{InPlace: map[int]int{}}
		add := func(v export.Value, n *graph.Node) {
			v.Shape = n.Shape()
			p.Outputs, out.Outputs = append(p.Outputs, v), append(out.Outputs, n)
		}
		for _, slot := range built.State {
			name := slot.Parameter.GetParameterName()
			place := int(slot.Parameter.GetParameterHandle())
			p.Inputs[place] = export.Value{Name: name, Role: export.State, Shape: slot.Parameter.Shape()}
			if slot.New != nil {
				out.InPlace[len(out.Outputs)] = place
				add(export.Value{Name: name, Role: export.State, Replaces: name}, slot.New)
			}
		}
		for _, n := range built.Outputs {
			add(export.Value{Name: "logs", Role: export.Log}, n)
		}
		if x.outputs != nil {
			outputs := x.outputs()
			for _, name := range slices.Sorted(maps.Keys(outputs)) {
				if outputs[name] == nil {
					panic(fmt.Errorf("output %q is nil", name))
				}
				add(export.Value{Name: name, Role: export.Output}, outputs[name])
			}
		}
		return out
	})
	if err != nil {
		return nil, err
	}
	var unused []int
	for _, i := range module.Unused() {
		if p.Inputs[i].Role == export.Batch {
			unused = append(unused, i)
		}
	}
	if module, err = module.Without(unused...); err != nil {
		return nil, err
	}
	for _, i := range slices.Backward(unused) {
		p.Inputs = slices.Delete(p.Inputs, i, i+1)
	}
	p.Name, p.Text, p.StableHLO = s.Name, module.Text(), x.runtime.StableHLOVersion()
	return notRun{}, nil
}

func (x *exporting) fill(state *State, batch data.Batch) (err error) {
	if x.NoWeights && !x.Example {
		return nil
	}
	p := &x.program
	p.Weights = map[string]*tensors.Tensor{}
	var names []string
	for _, v := range p.Inputs {
		if v.Role == export.State {
			names = append(names, v.Name)
		}
	}
	values, err := state.Values(names...)
	if err != nil {
		return err
	}
	for i, name := range names {
		p.Weights[name] = values[i]
	}
	if x.Example {
		if p.Example, err = runOnce(p, x.runtime, batch); err != nil {
			return fmt.Errorf("example: %w", err)
		}
	}
	if x.NoWeights {
		p.Weights = nil
	}
	return nil
}

func runOnce(p *export.Program, on *xla.Runtime, batch data.Batch) (e *export.Example, err error) {
	m, err := p.Compile(on)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	e = &export.Example{Inputs: map[string]*tensors.Tensor{}}
	for _, f := range batch.Fields {
		if !slices.ContainsFunc(p.Inputs, func(v export.Value) bool { return v.Role == export.Batch && v.Name == f.Name }) {
			continue
		}
		t, err := store.TensorOf(f.Array)
		if err != nil {
			return nil, err
		}
		e.Inputs[f.Name] = t
	}
	if e.Outputs, err = m.Run(e.Inputs); err != nil {
		return nil, err
	}
	state, err := m.State()
	if err != nil {
		return nil, err
	}
	for _, v := range p.Outputs {
		if v.Replaces != "" {
			e.Outputs[v.Name] = state[v.Replaces]
		}
	}
	return e, nil
}
