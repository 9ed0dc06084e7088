package xla

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/hlo"
)

type eagerRun struct {
	*Runtime
	eager   *Eager
	builder *eagerBuilder
	inputs  map[string]compute.Buffer
	made    []compute.Buffer // owned by the run
	// For CheckFinite.
	state  map[compute.Buffer]finiteness
	lines  map[compute.Buffer]string
	places graphs.Places
}

func (r *eagerRun) Builder(name string) compute.Builder {
	b := hlo.NewEager(name, r.operation)
	r.builder = &eagerBuilder{b, &eagerMain{Function: b.Main().(*hlo.Function), builder: b, run: r}}
	return r.builder
}

func (r *eagerRun) operation(o hlo.Single) ([]compute.Buffer, error) {
	outputs, err := r.eager.execute(o.Module, o.Operands)
	if err != nil {
		return nil, err
	}
	r.made = append(r.made, outputs...)
	if !r.eager.CheckFinite {
		return outputs, nil
	}
	return outputs, r.check(o, outputs)
}

// buffer finds a node's value, which GoMLX only passes to the builder.
func (r *eagerRun) buffer(n *graph.Node) (compute.Buffer, error) {
	if of, ok := n.Graph().Backend().(*eagerRun); !ok || of != r {
		return nil, fmt.Errorf("it belongs to another graph, %q", n.Graph().Name())
	}
	graph.Identity(n)
	return r.builder.Value(r.builder.main.last)
}

func (r *eagerRun) take(nodes []*graph.Node) ([]compute.Buffer, error) {
	outputs := make([]compute.Buffer, len(nodes))
	taken := map[compute.Buffer]bool{}
	for _, b := range r.inputs {
		taken[b] = true
	}
	for i, n := range nodes {
		if n == nil {
			continue
		}
		b, err := r.buffer(n)
		if err == nil && taken[b] {
			b, err = r.copy(b)
		}
		if err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		outputs[i], taken[b] = b, true
	}
	kept := r.made[:0]
	for _, b := range r.made {
		if !taken[b] {
			kept = append(kept, b)
		}
	}
	r.made = kept
	return outputs, nil
}

func (r *eagerRun) copy(b compute.Buffer) (compute.Buffer, error) {
	shape, err := b.Shape()
	if err != nil {
		return nil, err
	}
	outputs, err := r.eager.simple("copy", shape, func(_ compute.Function, x compute.Value) (compute.Value, error) { return x, nil }, b)
	if err != nil {
		return nil, err
	}
	r.made = append(r.made, outputs)
	return outputs, nil
}

func (r *eagerRun) free() error {
	var first error
	for _, b := range r.made {
		if err := b.Finalize(); err != nil && first == nil {
			first = err
		}
	}
	r.made = nil
	return first
}

type eagerBuilder struct {
	*hlo.Builder
	main *eagerMain
}

func (b *eagerBuilder) Main() compute.Function { return b.main }

type eagerMain struct {
	*hlo.Function
	builder *hlo.Builder
	run     *eagerRun
	last    compute.Value
}

func (f *eagerMain) Identity(x compute.Value) (compute.Value, error) {
	f.last = x
	return x, nil
}

func (f *eagerMain) Parameter(name string, shape shapes.Shape, sharding *compute.ShardingSpec) (compute.Value, error) {
	if sharding != nil {
		return nil, fmt.Errorf("parameter %q is sharded over devices, but operation by operation there is only one device", name)
	}
	v, ok := f.run.inputs[name]
	if !ok {
		return nil, fmt.Errorf("no value was given for parameter %q, %s", name, shape)
	}
	got, err := v.Shape()
	if err != nil {
		return nil, fmt.Errorf("parameter %q: %w", name, err)
	}
	if !got.Equal(shape) {
		return nil, fmt.Errorf("parameter %q: expected a value of shape %s, got %s", name, shape, got)
	}
	if err := f.run.note(v, shape); err != nil {
		return nil, err
	}
	if found := f.run.state[v]; found != finite {
		return nil, &NotFiniteError{Op: compute.OpTypeParameter.String(), Parameter: name, NaN: found == notANumber, Output: shape, Where: f.run.lines[v]}
	}
	return f.builder.Known(compute.OpTypeParameter, shape, v)
}

func (f *eagerMain) Constant(flat any, dims ...int) (compute.Value, error) {
	t := reflect.TypeOf(flat)
	if t == nil || t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("constant of type %T, expected a slice", flat)
	}
	shape := shapes.Shape{DType: dtypes.FromGoType(t.Elem()), Dimensions: slices.Clone(dims)}
	v, err := f.run.BufferFromFlatData(0, flat, shape)
	if err != nil {
		return nil, fmt.Errorf("constant: %w", err)
	}
	f.run.made = append(f.run.made, v)
	if err := f.run.note(v, shape); err != nil {
		return nil, err
	}
	return f.builder.KnownConstant(flat, shape, v)
}

func (f *eagerMain) Return([]compute.Value, []*compute.ShardingSpec) error {
	return errors.New("a graph that runs operation by operation is not compiled")
}

func (r *eagerRun) check(o hlo.Single, outputs []compute.Buffer) error {
	worst, line := finite, o.Where
	var operands []shapes.Shape
	for i, b := range o.Operands {
		worst = max(worst, r.state[b])
		operands = append(operands, o.Module.Parameters[i].Shape)
		line = cmp.Or(line, r.lines[b]) // a gradient belongs to its operand's line
	}
	for i, b := range outputs {
		shape := o.Module.Outputs[i].Shape
		found, err := r.eager.finiteness(b, shape)
		if err != nil {
			return err
		}
		r.state[b], r.lines[b] = found, line
		if found <= worst {
			continue
		}
		e := &NotFiniteError{Op: o.Kind.String(), NaN: found == notANumber, Operands: operands, Output: shape, Where: o.Where}
		for _, operand := range o.Operands {
			if from := r.lines[operand]; from != "" && from != o.Where && !slices.Contains(e.From, from) {
				e.From = append(e.From, from)
			}
		}
		return e
	}
	return nil
}

func (r *eagerRun) note(b compute.Buffer, shape shapes.Shape) (err error) {
	if r.eager.CheckFinite {
		r.lines[b] = r.places.Here()
		r.state[b], err = r.eager.finiteness(b, shape)
	}
	return err
}
