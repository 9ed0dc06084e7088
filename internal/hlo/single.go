package hlo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
)

// Single is one operation as a program, with its operands' values.
type Single struct {
	Kind compute.OpType
	// Module has a parameter per operand, then per captured value. Equal kinds, shapes, attributes and functions have
	// equal texts.
	Module   *Module
	Operands []compute.Buffer
	Where    string
}

type eager struct {
	run    func(Single) ([]compute.Buffer, error)
	values map[*value]compute.Buffer
	taken  []*value
}

func (e *eager) outer(o *op) string {
	i := slices.Index(e.taken, o.value)
	if i < 0 {
		i, e.taken = len(e.taken), append(e.taken, o.value)
	}
	return fmt.Sprintf("outer%d", i)
}

// NewEager returns a builder that runs each operation when added, on one device, by run, which returns the outputs.
// [Builder.Known] and [Builder.KnownConstant] replace Parameter and Constant. Do not call Compile.
func NewEager(name string, run func(Single) ([]compute.Buffer, error)) *Builder {
	b := New(name, nil)
	b.eager = &eager{run: run, values: map[*value]compute.Buffer{}}
	return b
}

// Known adds an existing value to a builder of [NewEager].
func (b *Builder) Known(kind compute.OpType, shape shapes.Shape, v compute.Buffer) (compute.Value, error) {
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
	return &op{in: b.main, value: in}, nil
}

func (b *Builder) KnownConstant(flat any, shape shapes.Shape, v compute.Buffer) (compute.Value, error) {
	x, err := b.Known(compute.OpTypeConstant, shape, v)
	if err == nil {
		b.literal(x.(*op).value, flat)
	}
	return x, err
}

func (b *Builder) Value(x compute.Value) (compute.Buffer, error) {
	ops, err := b.known([]compute.Value{x})
	if err != nil {
		return nil, fmt.Errorf("hlo: value of an operation: %w", err)
	}
	if b.eager == nil {
		return nil, fmt.Errorf("hlo: value of an operation: builder %q does not run its operations", b.name)
	}
	return b.eager.values[ops[0].value], nil
}

func (b *Builder) alone(kind compute.OpType, lower lowering) lowering {
	where := b.places.Here()
	return func(operands []*value) ([]*value, error) {
		if kind == compute.OpTypeParameter {
			return nil, errors.New("a builder that runs its operations has no parameters: give values by Known")
		}
		if b.devices.Count() > 1 {
			return nil, fmt.Errorf("for %d devices, expected 1: operations that run one by one use one device", b.devices.Count())
		}
		m := &Module{Name: kind.String(), Ops: map[compute.OpType]int{kind: 1}, Devices: b.devices.clone(), meshes: b.meshes}
		b.main.text = stablehlo.New(m.Name).Main() // for lowerings
		flow := slices.Contains([]compute.OpType{compute.OpTypeCall, compute.OpTypeWhile, compute.OpTypeIf, compute.OpTypeSort}, kind)
		if flow {
			b.main.text = b.root.Closure() // numbered apart from closures
		}
		inputs, values := make([]*value, len(operands)), make([]compute.Buffer, len(operands))
		known := map[*value]compute.Buffer{}
		for i, v := range operands {
			var err error
			if inputs[i], err = b.main.text.NamedInput(parameterName(i), v.Shape()); err != nil {
				return nil, err
			}
			m.Parameters = append(m.Parameters, Parameter{Name: parameterName(i), Shape: shapeOf(v)})
			b.sameLiteral(inputs[i], v)
			values[i] = b.eager.values[v]
			known[inputs[i]] = values[i]
		}
		results, err := lower(inputs)
		if err != nil {
			return nil, err
		}
		// Identity needs no program.
		made := false
		for _, v := range results {
			m.Outputs = append(m.Outputs, Output{Shape: shapeOf(v)})
			if _, handed := known[v]; !handed {
				made = true
			}
		}
		if made {
			if m.body, err = bodyText(b.main.text.Statements, results); err != nil {
				return nil, err
			}
			if m.functions, err = definitions(reach(b.main.called, map[*Function]bool{}), map[int]bool{}); err != nil {
				return nil, err
			}
			if flow {
				values = b.eager.renumber(m, values)
			}
			outputs, err := b.eager.run(Single{kind, m, values, where})
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

// These names depend on other operations.
var numbered = regexp.MustCompile(`(%|%outer|%arg|@f)(\d+)\b`)

// The text must depend only on its operation; main's captured values become parameters.
func (e *eager) renumber(m *Module, values []compute.Buffer) []compute.Buffer {
	names := map[string]string{}
	rename := func(text string) string {
		return numbered.ReplaceAllStringFunc(text, func(name string) string {
			if _, known := names[name]; !known {
				parts := numbered.FindStringSubmatch(name)
				names[name] = fmt.Sprint(parts[1], len(names))
				if place, err := strconv.Atoi(parts[2]); err == nil && parts[1] == "%outer" {
					v, at := e.taken[place], len(m.Parameters)
					names[name] = "%" + parameterName(at)
					m.Parameters = append(m.Parameters, Parameter{Name: parameterName(at), Shape: shapeOf(v)})
					values = append(values, e.values[v])
				}
			}
			return names[name]
		})
	}
	m.body = rename(m.body)
	for i, f := range m.functions {
		m.functions[i] = rename(f)
	}
	return values
}
