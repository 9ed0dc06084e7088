// Package hlo lowers GoMLX graphs to StableHLO text.
//
// A [Builder] is a GoMLX backends.Builder. It writes no code for a device: what was built becomes a [Module], and the
// function given to [New] compiles it. The package knows nothing of PJRT.
//
// Read builder.go first, then module.go. The operations are grouped by topic: elementwise.go, complex.go, shape.go, index.go, dot.go,
// convolution.go, reduce.go, window.go, norm.go, fft.go, random.go, bits.go, collective.go. repeat.go makes a module that
// runs another one's function many times.
package hlo

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/go-xla/pkg/types/shardy"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/internal/graphs"
)

var (
	// ErrCompiled: a builder was used after its Compile.
	ErrCompiled = errors.New("the builder was compiled already; make a new one")
	// ErrForeignOp: an operand is nil or was made by another builder.
	ErrForeignOp = errors.New("the operand is not of this builder")
)

// Builder collects the operations of one program. It is used by one goroutine at a time, and ends with Compile.
type Builder struct {
	name     string
	compile  func(*Module) (backends.Executable, error)
	main     *stablehlo.Function
	compiled bool

	parameters []Parameter
	inPlace    map[int]int
	ops        map[backends.OpType]int
	devices    Devices
	meshes     []*shardy.DeviceMesh
	cpu        bool
	eager      *eager // nil: the operations run together, once compiled
	places     graphs.Places
	written    []Operation
}

var _ backends.Builder = (*Builder)(nil)

// New starts a program. compile is called once, by [Builder.Compile].
func New(name string, compile func(*Module) (backends.Executable, error)) *Builder {
	return &Builder{
		name: name, compile: compile, main: stablehlo.New(name).Main(),
		inPlace: map[int]int{}, ops: map[backends.OpType]int{},
	}
}

// ForCPU says whether the program is for XLA's CPU backend only, and may be written as it runs fastest there. It gives b back.
func (b *Builder) ForCPU(cpu bool) *Builder {
	b.cpu = cpu
	return b
}

// value is one value of the program's text, with the shape that it has there.
type value = stablehlo.Value

// op is what GoMLX holds of a value.
type op struct {
	of    *Builder
	value *value
}

func (b *Builder) op(v *value) *op { return &op{b, v} }

// Name is the program's name, as given to [New].
func (b *Builder) Name() string { return b.name }

// OpShape is the shape of an operation's output.
func (b *Builder) OpShape(x backends.Op) (shapes.Shape, error) {
	values, err := b.values([]backends.Op{x})
	if err != nil {
		return shapes.Invalid(), fmt.Errorf("hlo: shape of an operand: %w", err)
	}
	return shapeOf(values[0]), nil
}

// values checks that operands may be used here.
func (b *Builder) values(operands []backends.Op) ([]*value, error) {
	if b.compiled {
		return nil, fmt.Errorf("builder %q: %w", b.name, ErrCompiled)
	}
	values := make([]*value, len(operands))
	for i, operand := range operands {
		o, ok := operand.(*op)
		switch {
		case !ok || o == nil:
			return nil, fmt.Errorf("operand %d is %T(%v): %w", i, operand, operand, ErrForeignOp)
		case o.of != b:
			return nil, fmt.Errorf("operand %d is of builder %q, this is %q: %w", i, o.of.name, b.name, ErrForeignOp)
		}
		values[i] = o.value
	}
	return values, nil
}

// lowering writes the statements of an operation. What it returns are the operation's outputs.
type lowering func(operands []*value) ([]*value, error)

// emit is the way of every operation into the program: it checks the operands, counts the operation and makes its
// errors. The shape inference of go-xla and GoMLX panics for some wrong arguments; that becomes an error here.
func (b *Builder) emit(kind backends.OpType, operands []backends.Op, lower lowering) ([]*op, error) {
	values, err := b.values(operands)
	if err != nil {
		return nil, &Error{Operation: kind, Err: err}
	}
	if b.eager != nil {
		lower = b.alone(kind, lower)
	}
	var results []*value
	if caught := graphs.Catch(func() { results, err = lower(values) }); caught != nil {
		err = caught
	}
	if err == nil {
		err = checkSizes(results)
	}
	if err != nil {
		return nil, &Error{kind, shapesOf(values), err}
	}
	b.ops[kind]++
	if b.eager == nil {
		b.noted(kind, values, results, len(b.main.Statements))
	}
	ops := make([]*op, len(results))
	for i, v := range results {
		ops[i] = b.op(v)
	}
	return ops, nil
}

// emitOne is emit for an operation of one output.
func (b *Builder) emitOne(kind backends.OpType, operands []backends.Op, lower func(operands []*value) (*value, error)) (backends.Op, error) {
	ops, err := b.emit(kind, operands, func(operands []*value) ([]*value, error) {
		v, err := lower(operands)
		return []*value{v}, err
	})
	if err != nil {
		return nil, err
	}
	return ops[0], nil
}

// Parameter adds an input. Inputs are fed in the order in which they were added. sharding may be nil: the value is then
// whole on each device.
func (b *Builder) Parameter(name string, shape shapes.Shape, sharding *backends.ShardingSpec) (backends.Op, error) {
	return b.emitOne(backends.OpTypeParameter, nil, func([]*value) (*value, error) {
		if err := checkShape(shape); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		for i, p := range b.parameters {
			if p.Name == name {
				return nil, fmt.Errorf("parameter %d has the name %q already", i, name)
			}
		}
		split, err := b.sharding(sharding, shape, false)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		// The name in the text is the place: names of variables may differ in characters only that MLIR does not have.
		v, err := b.main.NamedInput(parameterName(len(b.parameters)), toXLA(shape))
		if err != nil {
			return nil, err
		}
		b.parameters = append(b.parameters, Parameter{Name: name, Shape: shape.Clone(), split: split})
		return v, nil
	})
}

func parameterName(i int) string { return fmt.Sprintf("p%d", i) }

// InPlace says that an output, by its place in the list given to Compile, may be written over the memory of a
// parameter, by the order in which it was added. The two must have the same shape, which Compile checks; each output and
// each parameter is named once at most. The caller of the program then loses the input.
func (b *Builder) InPlace(output, parameter int) error {
	if b.compiled {
		return fmt.Errorf("hlo: in place: builder %q: %w", b.name, ErrCompiled)
	}
	if output < 0 || parameter < 0 || parameter >= len(b.parameters) {
		return fmt.Errorf("hlo: in place: output %d over parameter %d, but there are %d parameters", output, parameter, len(b.parameters))
	}
	if other, taken := b.inPlace[output]; taken {
		return fmt.Errorf("hlo: in place: output %d over parameter %d: it goes over parameter %d already", output, parameter, other)
	}
	for other, p := range b.inPlace {
		if p == parameter {
			return fmt.Errorf("hlo: in place: output %d over parameter %d: output %d goes there already", output, parameter, other)
		}
	}
	b.inPlace[output] = parameter
	return nil
}

// Compile ends the building and gives the module to the function that [New] was given. shardings may be nil; else it has
// one entry per output, of which each may be nil.
func (b *Builder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	module, err := b.module(outputs, shardings)
	if err != nil {
		return nil, fmt.Errorf("hlo: compile %q: %w", b.name, err)
	}
	b.compiled = true
	if b.compile == nil {
		return nil, fmt.Errorf("hlo: compile %q: the builder was made without a function that compiles", b.name)
	}
	executable, err := b.compile(module)
	if err == nil && executable == nil {
		err = fmt.Errorf("hlo: compile %q: no executable came back", b.name)
	}
	return executable, err
}

func (b *Builder) module(outputs []backends.Op, shardings []*backends.ShardingSpec) (*Module, error) {
	results, err := b.values(outputs)
	if err != nil {
		return nil, fmt.Errorf("outputs: %w", err)
	}
	if len(results) == 0 {
		return nil, errors.New("there are no outputs; a program needs one at least")
	}
	if len(shardings) != 0 && len(shardings) != len(results) {
		return nil, fmt.Errorf("there are %d outputs and %d shardings; expected one for each output, or none", len(results), len(shardings))
	}
	m := &Module{
		Name: b.name, Parameters: slices.Clone(b.parameters), InPlace: maps.Clone(b.inPlace), Ops: maps.Clone(b.ops),
		Devices: b.devices.clone(), meshes: b.meshes,
	}
	for i, v := range results {
		out := Output{Shape: shapeOf(v)}
		if len(shardings) != 0 {
			if out.split, err = b.sharding(shardings[i], out.Shape, true); err != nil {
				return nil, fmt.Errorf("output %d: %w", i, err)
			}
		}
		m.Outputs = append(m.Outputs, out)
	}
	for output, parameter := range b.inPlace {
		if output >= len(m.Outputs) {
			return nil, fmt.Errorf("in place: output %d of %d over parameter %d", output, len(m.Outputs), parameter)
		}
		from, to := m.Outputs[output].Shape, m.Parameters[parameter]
		if !from.Equal(to.Shape) {
			return nil, fmt.Errorf("in place: output %d is %s, but parameter %d (%q) is %s; expected the same shape", output, from, parameter, to.Name, to.Shape)
		}
	}
	m.body, err = bodyText(b.main.Statements, results)
	m.source = &source{m.body, b.written}
	return m, err
}

// Capabilities are all operations of GoMLX's builder and all types of elements that its tensors can have.
func Capabilities() backends.Capabilities {
	c := backends.Capabilities{Operations: map[backends.OpType]bool{}, DTypes: map[dtypes.DType]bool{}}
	for kind := backends.OpTypeInvalid + 1; kind < backends.OpTypeLast; kind++ {
		switch kind {
		case backends.OpTypeBroadcast, backends.OpTypeSelectAndScatterSum, backends.OpTypeCollectiveBroadcast, backends.OpTypeAllGather:
			// They have a number but no method.
		default:
			c.Operations[kind] = true
		}
	}
	for t := range classes {
		c.DTypes[t] = true
	}
	return c
}
