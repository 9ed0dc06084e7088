package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// ErrDamaged reports a file that is not as written.
var ErrDamaged = errors.New("damaged")

var errNewer = errors.New("written by a newer lazo")

// Role is an input's or output's purpose.
type Role string

const (
	State  Role = "state"  // an input that persists, or the output that replaces it
	Batch  Role = "batch"  // an input of each run
	Output Role = "output" // an output of a model
	Log    Role = "log"    // an output with a step's logged numbers: see Value.Fields
)

// Value is an input or an output of a program.
type Value struct {
	// Name is unique among the inputs or outputs: UTF-8 text, not a path.
	Name  string
	Role  Role
	Shape shapes.Shape
	// Replaces is the input of role State and the same shape that an output of role State replaces.
	Replaces string
	// Fields names the numbers of a Log, in order.
	Fields []string
}

// Program is a program with its inputs and outputs, in the text's order.
type Program struct {
	Name            string
	Text            string
	StableHLO       string // version, like "1.13.3", or ""
	Inputs, Outputs []Value
	// Sizes has texts for other batch sizes. The batch is the first axis of the inputs of role Batch and of all
	// outputs.
	Sizes map[int]string
	// Weights has the values of all State inputs by name, or is nil.
	Weights map[string]*tensors.Tensor
	// Example is one run, or nil.
	Example *Example
	// Lazo is the version of lazo that wrote the folder, set by Write.
	Lazo string
}

// Example has Batch inputs and outputs of one run on the weights, by name.
type Example struct{ Inputs, Outputs map[string]*tensors.Tensor }

const (
	maxValues = 100_000
	maxRank   = 64
	maxName   = 4 << 10 // bytes
	maxText   = 1 << 30 // bytes
)

func (p *Program) check() error {
	switch {
	case strings.TrimSpace(p.Text) == "":
		return errors.New("the program is empty")
	case len(p.Text) > maxText:
		return fmt.Errorf("the program has %d bytes, expected at most %d", len(p.Text), maxText)
	case !utf8.ValidString(p.Name) || len(p.Name) > maxName:
		return fmt.Errorf("the name %.40q is not UTF-8 of at most %d bytes", p.Name, maxName)
	}
	inputs, err := byName("input", p.Inputs, State, Batch)
	if err != nil {
		return err
	}
	outputs, err := byName("output", p.Outputs, State, Output, Log)
	if err != nil {
		return err
	}
	if err := checkReplaced(p.Outputs, inputs); err != nil {
		return err
	}
	if err := p.checkSizes(); err != nil {
		return err
	}
	if p.Weights != nil {
		if err := checkTensors("weights", p.Weights, p.inputs(State)); err != nil {
			return err
		}
	}
	if p.Example == nil {
		return nil
	}
	if err := checkTensors("example: inputs", p.Example.Inputs, p.inputs(Batch)); err != nil {
		return err
	}
	return checkTensors("example: outputs", p.Example.Outputs, outputs)
}

func byName(what string, values []Value, roles ...Role) (map[string]Value, error) {
	if len(values) > maxValues {
		return nil, fmt.Errorf("%d %ss, expected at most %d", len(values), what, maxValues)
	}
	named := make(map[string]Value, len(values))
	for i, v := range values {
		_, twice := named[v.Name]
		switch {
		case v.Name == "" || len(v.Name) > maxName || !utf8.ValidString(v.Name):
			return nil, fmt.Errorf("%s %d: the name %.40q is not UTF-8 of 1 to %d bytes", what, i, v.Name, maxName)
		case twice:
			return nil, fmt.Errorf("%s %d: a second one named %q", what, i, v.Name)
		case !slices.Contains(roles, v.Role):
			return nil, fmt.Errorf("%s %q: role %q, expected one of %q", what, v.Name, v.Role, roles)
		case (v.Replaces != "") != (what == "output" && v.Role == State):
			return nil, fmt.Errorf("%s %q, %s: it replaces %q; expected a replacement for each output of the role state, and for no other", what, v.Name, v.Role, v.Replaces)
		case len(v.Fields) > 0 && (v.Role != Log || len(v.Fields) != v.Shape.Size()):
			return nil, fmt.Errorf("%s %q, %s of shape %s: %d fields, expected one for each number of a log", what, v.Name, v.Role, v.Shape, len(v.Fields))
		}
		if _, err := sizeOf(v.Shape); err != nil {
			return nil, fmt.Errorf("%s %q: %w", what, v.Name, err)
		}
		named[v.Name] = v
	}
	return named, nil
}

func checkReplaced(outputs []Value, inputs map[string]Value) error {
	replaced := map[string]bool{}
	for _, o := range outputs {
		if o.Role != State {
			continue
		}
		in, ok := inputs[o.Replaces]
		if !ok || in.Role != State || !in.Shape.Equal(o.Shape) || replaced[o.Replaces] {
			return fmt.Errorf("output %q of shape %s replaces %q: expected a state of that shape that no other output replaces", o.Name, o.Shape, o.Replaces)
		}
		replaced[o.Replaces] = true
	}
	return nil
}

func (p *Program) inputs(role Role) map[string]Value {
	kept := map[string]Value{}
	for _, v := range p.Inputs {
		if v.Role == role {
			kept[v.Name] = v
		}
	}
	return kept
}

func checkTensors(what string, values map[string]*tensors.Tensor, want map[string]Value) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t, ok := values[name]
		if !ok || t == nil {
			return fmt.Errorf("%s: none named %q; expected all of %q", what, name, slices.Sorted(maps.Keys(want)))
		}
		if !t.Shape().Equal(want[name].Shape) {
			return fmt.Errorf("%s: %q has the shape %s, expected %s", what, name, t.Shape(), want[name].Shape)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("%s: %q is not among %q", what, name, slices.Sorted(maps.Keys(want)))
		}
	}
	return nil
}
