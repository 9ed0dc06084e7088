package xla

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla/hlo"
)

// eagerRun is the backend of a graph whose operations run as they come.
type eagerRun struct {
	*Runtime
	eager   *Eager
	builder *eagerBuilder
	inputs  map[string]backends.Buffer
	made    []backends.Buffer // the run's own
	// Those of CheckFinite: what is known of values, and the user's lines that made them.
	state  map[backends.Buffer]finiteness
	lines  map[backends.Buffer]string
	places graphs.Places
}

func (r *eagerRun) Builder(name string) backends.Builder {
	r.builder = &eagerBuilder{Builder: hlo.NewEager(name, r.operation), run: r}
	return r.builder
}

// operation runs one operation.
func (r *eagerRun) operation(o hlo.Single) ([]backends.Buffer, error) {
	outputs, err := r.eager.execute(o.Module, o.Operands)
	if err != nil {
		return nil, err
	}
	r.made = append(r.made, outputs...)
	if !r.eager.options.CheckFinite {
		return outputs, nil
	}
	return outputs, r.check(o, outputs)
}

// buffer finds the value of a node. GoMLX shows nobody the operation behind a node, but it hands it to the builder.
func (r *eagerRun) buffer(n *graph.Node) (backends.Buffer, error) {
	if of, ok := n.Graph().Backend().(*eagerRun); !ok || of != r {
		return nil, fmt.Errorf("it is of another graph, %q", n.Graph().Name())
	}
	graph.Identity(n)
	return r.builder.Value(r.builder.last)
}

// take gives the values of nodes away.
func (r *eagerRun) take(nodes []*graph.Node) ([]backends.Buffer, error) {
	outputs := make([]backends.Buffer, len(nodes))
	taken := map[backends.Buffer]bool{}
	for _, b := range r.inputs {
		taken[b] = true
	}
	for i, n := range nodes {
		if n == nil {
			continue
		}
		b, err := r.buffer(n)
		if err == nil && taken[b] { // an input, or an output twice
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

func (r *eagerRun) copy(b backends.Buffer) (backends.Buffer, error) {
	shape, err := r.BufferShape(b)
	if err != nil {
		return nil, err
	}
	outputs, err := r.eager.simple("copy", shape, func(_ *hlo.Builder, x backends.Op) (backends.Op, error) { return x, nil }, b)
	if err != nil {
		return nil, err
	}
	r.made = append(r.made, outputs)
	return outputs, nil
}

func (r *eagerRun) free() error {
	var first error
	for _, b := range r.made {
		if err := r.eager.on.BufferFinalize(b); err != nil && first == nil {
			first = err
		}
	}
	r.made = nil
	return first
}

// eagerBuilder gives a graph its parameters and constants as values.
type eagerBuilder struct {
	*hlo.Builder
	run  *eagerRun
	last backends.Op // what Identity was called with
}

// Identity hands on what it got: see [eagerRun.buffer].
func (b *eagerBuilder) Identity(x backends.Op) (backends.Op, error) {
	b.last = x
	return x, nil
}

func (b *eagerBuilder) Parameter(name string, shape shapes.Shape, sharding *backends.ShardingSpec) (backends.Op, error) {
	if sharding != nil {
		return nil, fmt.Errorf("parameter %q is split over devices: operation by operation there is one", name)
	}
	v, ok := b.run.inputs[name]
	if !ok {
		return nil, fmt.Errorf("no value was given for parameter %q, %s", name, shape)
	}
	got, err := b.run.BufferShape(v)
	if err != nil {
		return nil, fmt.Errorf("parameter %q: %w", name, err)
	}
	if !got.Equal(shape) {
		return nil, fmt.Errorf("parameter %q: expected a value of shape %s, got %s", name, shape, got)
	}
	if err := b.run.note(v, shape); err != nil {
		return nil, err
	}
	if found := b.run.state[v]; found != finite {
		return nil, &NotFiniteError{Op: backends.OpTypeParameter.String(), Parameter: name, NaN: found == notANumber, Output: shape, Where: b.run.lines[v]}
	}
	return b.Known(backends.OpTypeParameter, shape, v)
}

// Constant puts values on the device: to compile a program for each of them would be a waste.
func (b *eagerBuilder) Constant(flat any, dims ...int) (backends.Op, error) {
	t := reflect.TypeOf(flat)
	if t == nil || t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("constant of type %T, expected a slice", flat)
	}
	shape := shapes.Shape{DType: dtypes.FromGoType(t.Elem()), Dimensions: slices.Clone(dims)}
	v, err := b.run.BufferFromFlatData(0, flat, shape)
	if err != nil {
		return nil, fmt.Errorf("constant: %w", err)
	}
	b.run.made = append(b.run.made, v)
	if err := b.run.note(v, shape); err != nil {
		return nil, err
	}
	return b.Known(backends.OpTypeConstant, shape, v)
}

func (b *eagerBuilder) Compile([]backends.Op, []*backends.ShardingSpec) (backends.Executable, error) {
	return nil, errors.New("a graph that runs operation by operation is not compiled")
}
