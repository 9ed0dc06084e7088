package hlo

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
	"github.com/gomlx/go-xla/types/shardy"
)

// Module is a program to compile. Do not change its fields.
type Module struct {
	Name       string
	Parameters []Parameter
	Outputs    []Output
	InPlace    map[int]int
	// Ops counts GoMLX's operations, with parameters and constants.
	Ops     map[compute.OpType]int
	Devices Devices

	meshes    []*shardy.DeviceMesh
	functions []string
	body      string
	source    *source // nil after Without
}

type Parameter struct {
	Name  string
	Shape shapes.Shape
	split *shardy.ShardingSpec // nil: unspecified
	Value []byte
}

func (p Parameter) Part() (shapes.Shape, error) {
	part, err := partOf(p.Shape, p.split)
	if err != nil {
		return shapes.Invalid(), fmt.Errorf("hlo: parameter %q: %w", p.Name, err)
	}
	return part, nil
}

func partOf(whole shapes.Shape, split *shardy.ShardingSpec) (shapes.Shape, error) {
	if split == nil {
		return whole, nil
	}
	part := whole.Clone()
	for i, axis := range split.Axes {
		for _, a := range axis.MeshAxes {
			n, err := split.Mesh.AxisSize(a.AxisName)
			if err != nil {
				return shapes.Invalid(), err
			}
			part.Dimensions[i] /= n
		}
	}
	return part, nil
}

type Output struct {
	Shape shapes.Shape
	split *shardy.ShardingSpec
}

func (o Output) Part() (shapes.Shape, error) {
	part, err := partOf(o.Shape, o.split)
	if err != nil {
		return shapes.Invalid(), fmt.Errorf("hlo: output %s: %w", o.Shape, err)
	}
	return part, nil
}

// Devices has a program's devices. At most one of Replicas and Partitions is above 1.
type Devices struct {
	// Replicas run the program on their own inputs (GoMLX's SPMD). 0 means 1.
	Replicas int
	// Partitions are the parts into which Shardy divides the program, by the shardings of inputs and outputs. 0 means
	// none.
	Partitions int
	// Assignment has a device per replica or partition; nil leaves it to the runtime.
	Assignment []compute.DeviceNum
}

func (d Devices) Count() int { return max(1, d.Replicas) * max(1, d.Partitions) }

// Shardy reports whether Shardy partitions the program, even over one device.
func (d Devices) Shardy() bool { return d.Partitions > 0 }

func (d Devices) clone() Devices {
	d.Assignment = slices.Clone(d.Assignment)
	return d
}

// Text is StableHLO (MLIR).
func (m *Module) Text() string {
	var text strings.Builder
	name := cmp.Or(stablehlo.NormalizeIdentifier(m.Name), "module")
	fmt.Fprintf(&text, "module @%s", name)
	var attributes []string
	if m.Devices.Replicas > 0 || m.Devices.Shardy() {
		attributes = append(attributes,
			fmt.Sprintf("mhlo.num_replicas = %d : i32", max(1, m.Devices.Replicas)),
			fmt.Sprintf("mhlo.num_partitions = %d : i32", max(1, m.Devices.Partitions)))
	}
	if len(attributes) > 0 {
		fmt.Fprintf(&text, " attributes {%s}", strings.Join(attributes, ", "))
	}
	text.WriteString(" {\n")
	for _, mesh := range m.meshes {
		fmt.Fprintf(&text, "  %s\n", mesh.ToStableHLO())
	}
	text.WriteString(m.function("public", "main"))
	for _, f := range m.functions {
		text.WriteString(f)
	}
	text.WriteString("}\n")
	return text.String()
}

func (m *Module) function(visibility, name string) string {
	var inputs, outputs []string
	over := map[int]int{}
	for output, parameter := range m.InPlace {
		over[parameter] = output
	}
	private := visibility == "private"
	for i, p := range m.Parameters {
		var more []string
		if output, aliased := over[i]; aliased && !private {
			more = append(more, fmt.Sprintf("tf.aliasing_output = %d : i32", output))
		}
		if private {
			p.split = nil
		}
		inputs = append(inputs, fmt.Sprintf("%%%s: %s%s", parameterName(i), typeText(p.Shape), attributes(p.split, toXLA(p.Shape), more...)))
	}
	for _, o := range m.Outputs {
		if private {
			o.split = nil
		}
		outputs = append(outputs, typeText(o.Shape)+attributes(o.split, toXLA(o.Shape)))
	}
	return functionText(visibility, name, inputs, outputs, m.body)
}

func attributes(split *shardy.ShardingSpec, shape xlashapes.Shape, more ...string) string {
	if split != nil {
		more = append([]string{"sdy.sharding = " + split.ToValueAttribute(shape)}, more...)
	}
	if len(more) == 0 {
		return ""
	}
	return " {" + strings.Join(more, ", ") + "}"
}

func functionText(visibility, name string, inputs, outputs []string, body string) string {
	return fmt.Sprintf("  func.func %s @%s(%s) -> (%s) {\n%s  }\n", visibility, name, strings.Join(inputs, ", "), strings.Join(outputs, ", "), body)
}

func bodyText(statements []*stablehlo.Statement, results []*value) (string, error) {
	var text bytes.Buffer
	for _, s := range statements {
		if err := s.Write(&text, "    "); err != nil {
			return "", err
		}
		text.WriteByte('\n')
	}
	names, types := make([]string, len(results)), make([]string, len(results))
	for i, v := range results {
		names[i], types[i] = v.String(), v.Shape().ToStableHLO()
	}
	fmt.Fprintf(&text, "    return %s : %s\n", strings.Join(names, ", "), strings.Join(types, ", "))
	return text.String(), nil
}

func typeText(s shapes.Shape) string { return toXLA(s).ToStableHLO() }

var parameterPattern = regexp.MustCompile(`%p(\d+)\b`)

func (m *Module) Unused() (places []int) {
	used := map[string]bool{}
	for _, found := range parameterPattern.FindAllString(m.body, -1) {
		used[found] = true
	}
	for i := range m.Parameters {
		if !used["%"+parameterName(i)] {
			places = append(places, i)
		}
	}
	return places
}

// Without returns a copy without some [Module.Unused] parameters. A parameter that is used or overwritten is an error.
func (m *Module) Without(unused ...int) (*Module, error) {
	all := m.Unused()
	less := m.clone()
	less.Parameters, less.source = nil, nil // lines changed
	now := map[string]string{}
	place := map[int]int{}
	for i, p := range m.Parameters {
		if !slices.Contains(unused, i) {
			place[i] = len(less.Parameters)
			now["%"+parameterName(i)] = "%" + parameterName(len(less.Parameters))
			less.Parameters = append(less.Parameters, p)
		} else if !slices.Contains(all, i) {
			return nil, fmt.Errorf("hlo: %q without parameter %d (%q): the program uses it", m.Name, i, p.Name)
		}
	}
	for output, parameter := range less.InPlace {
		at, kept := place[parameter]
		if !kept {
			return nil, fmt.Errorf("hlo: %q without parameter %d (%q): output %d replaces it", m.Name, parameter, m.Parameters[parameter].Name, output)
		}
		less.InPlace[output] = at
	}
	less.body = parameterPattern.ReplaceAllStringFunc(m.body, func(name string) string { return now[name] })
	return less, nil
}

func (m *Module) clone() *Module {
	c := *m
	c.Parameters, c.Outputs, c.functions = slices.Clone(m.Parameters), slices.Clone(m.Outputs), slices.Clone(m.functions)
	c.InPlace, c.Ops, c.Devices = maps.Clone(m.InPlace), maps.Clone(m.Ops), m.Devices.clone()
	return &c
}
