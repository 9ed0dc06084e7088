package flaxlike

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/managed"
)

// Summary lists a model's layers and variables, with totals.
type Summary struct {
	managed.Summary
	Layers []LayerRow
	Arrows []Arrow
	Inputs map[string]shapes.Shape
	// Outputs are the outputs' kinds ([Prediction.Kind]).
	Outputs map[string]string
}

// Summary lists the layers in call order, and all variables. It is empty before the first batch ([Model.Init]).
func (m *Model) Summary() Summary {
	m.seen.mu.Lock()
	layers, arrows, inputs := m.seen.layers, m.seen.arrows, m.seen.inputs
	s := Summary{Arrows: slices.Clone(arrows), Inputs: map[string]shapes.Shape{}, Outputs: map[string]string{}}
	for name, of := range m.seen.odds {
		s.Outputs[name] = of.kindOf(m.seen.widths[name])
	}
	m.seen.mu.Unlock()
	s.Summary = m.state.Summary()
	for _, d := range inputs {
		s.Inputs[d.Name] = shapes.Make(d.Type, d.Dims...)
	}
	if len(layers) == 0 {
		return s
	}
	outputs, taken := len(layers), map[string]bool{}
	for i, l := range layers {
		s.Layers = append(s.Layers, l.LayerRow)
		if l.Kind == outputKind {
			outputs = min(outputs, i)
		}
		maps.Copy(taken, l.took)
	}
	var rest []LayerRow
	for _, v := range s.Rows {
		name, ours := strings.CutPrefix(v.Layer+"/", "/"+modelScope+"/")
		name = strings.TrimSuffix(name, "/")
		found := false
		for i := range layers[:outputs] {
			if layers[i].took[v.Layer+"/"+v.Name] {
				s.Layers[i].add(v)
				found = true
			}
		}
		for i := range layers[:outputs] { // as GoMLX's lstm
			of := layers[i].Name
			if ours && !taken[v.Layer+"/"+v.Name] && (of == "" && outputs == 1 || of != "" && (name == of || strings.HasPrefix(name, of+"/"))) {
				s.Layers[i].add(v)
				found = true
			}
		}
		for i := range rest {
			if !found && rest[i].Name == name {
				rest[i].add(v)
				found = true
			}
		}
		if ours && !found {
			rest = append(rest, LayerRow{Name: name, Kind: variablesKind})
			rest[len(rest)-1].add(v)
		}
	}
	s.Layers = slices.Insert(s.Layers, outputs, rest...)
	for i := range s.Arrows {
		if s.Arrows[i].To >= outputs {
			s.Arrows[i].To += len(rest)
		}
	}
	return s
}

func (s Summary) String() string {
	if len(s.Layers) == 0 {
		return s.Summary.String()
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "layer\tkind\toutput\tsize")
	for _, l := range s.Layers {
		shape := ""
		if l.Kind != variablesKind {
			shape = fmt.Sprint(l.Output.DType, " ", l.Output.Dimensions)
		}
		fixed := ""
		if l.Fixed > 0 {
			fixed = fmt.Sprintf("\t%d not trainable", l.Fixed)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d%s\n", l.Name, l.Kind, shape, l.Size, fixed)
	}
	fmt.Fprintln(table, "\ntotal\tvariables\tsize\tbytes")
	for k := managed.Parameter; k <= managed.RandomState; k++ {
		if of := s.Total(k); of.Variables > 0 {
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", k, of.Variables, of.Size, of.Bytes)
		}
	}
	_ = table.Flush()
	return text.String()
}
