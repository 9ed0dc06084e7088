package hlo

import (
	"errors"
	"fmt"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// Single is one operation as a program of its own, with the values of its operands.
type Single struct {
	Kind backends.OpType
	// Module has a parameter for each operand. Operations of the same kind, shapes and attributes have the same text.
	Module   *Module
	Operands []backends.Buffer
	// Where is the line of the user's code that asked for it; "" for what lazo adds, as gradients.
	Where string
}

// eager is what a builder knows that has each operation run as it comes.
type eager struct {
	run    func(Single) ([]backends.Buffer, error)
	values map[*value]backends.Buffer
}

// NewEager starts a program of which each operation is given to run at once, with the values of its operands; run gives
// those of its outputs. Parameters and constants come by [Builder.Known] in place of Parameter and Constant, and there is
// nothing to Compile. It runs on one device.
func NewEager(name string, run func(Single) ([]backends.Buffer, error)) *Builder {
	b := New(name, nil)
	b.eager = &eager{run: run, values: map[*value]backends.Buffer{}}
	return b
}

// Known adds a value that is there already, to a builder of [NewEager].
func (b *Builder) Known(kind backends.OpType, shape shapes.Shape, v backends.Buffer) (backends.Op, error) {
	if b.eager == nil {
		return nil, fmt.Errorf("hlo: %s: builder %q does not run its operations; make it with NewEager", kind, b.name)
	}
	if err := checkShape(shape); err != nil {
		return nil, fmt.Errorf("hlo: %s: %w", kind, err)
	}
	in, err := stablehlo.New(kind.String()).Main().NamedInput(parameterName(0), toXLA(shape))
	if err != nil {
		return nil, fmt.Errorf("hlo: %s: %w", kind, err)
	}
	b.eager.values[in] = v
	b.ops[kind]++
	return b.op(in), nil
}

// Value gives what an operation of a builder of [NewEager] came to. The buffer stays the runner's.
func (b *Builder) Value(x backends.Op) (backends.Buffer, error) {
	values, err := b.values([]backends.Op{x})
	if err != nil {
		return nil, fmt.Errorf("hlo: value of an operation: %w", err)
	}
	if b.eager == nil {
		return nil, fmt.Errorf("hlo: value of an operation: builder %q does not run its operations", b.name)
	}
	return b.eager.values[values[0]], nil
}

// alone makes of a lowering one that writes its operation into a program of its own, and runs it.
func (b *Builder) alone(kind backends.OpType, lower lowering) lowering {
	where := b.places.Here()
	return func(operands []*value) ([]*value, error) {
		if kind == backends.OpTypeParameter {
			return nil, errors.New("a builder that runs its operations takes values by Known")
		}
		if b.devices.Count() > 1 {
			return nil, fmt.Errorf("for %d devices, expected 1: operation by operation there is one", b.devices.Count())
		}
		m := &Module{Name: kind.String(), Ops: map[backends.OpType]int{kind: 1}, Devices: b.devices.clone(), meshes: b.meshes}
		b.main = stablehlo.New(m.Name).Main() // lowerings write their constants and functions there
		inputs, given := make([]*value, len(operands)), make([]backends.Buffer, len(operands))
		known := map[*value]backends.Buffer{}
		for i, v := range operands {
			var err error
			if inputs[i], err = b.main.NamedInput(parameterName(i), v.Shape()); err != nil {
				return nil, err
			}
			m.Parameters = append(m.Parameters, Parameter{Name: parameterName(i), Shape: shapeOf(v)})
			given[i] = b.eager.values[v]
			known[inputs[i]] = given[i]
		}
		results, err := lower(inputs)
		if err != nil {
			return nil, err
		}
		// What only hands its operand on, as Identity does, needs no program.
		made := false
		for _, v := range results {
			m.Outputs = append(m.Outputs, Output{Shape: shapeOf(v)})
			if _, handed := known[v]; !handed {
				made = true
			}
		}
		if made {
			if m.body, err = bodyText(b.main.Statements, results); err != nil {
				return nil, err
			}
			outputs, err := b.eager.run(Single{kind, m, given, where})
			if err != nil {
				return nil, err
			}
			if len(outputs) != len(results) {
				return nil, fmt.Errorf("the runner gave %d values, expected %d", len(outputs), len(results))
			}
			for i, v := range results {
				known[v] = outputs[i]
			}
		}
		for _, v := range results {
			b.eager.values[v] = known[v]
		}
		return results, nil
	}
}
