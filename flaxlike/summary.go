package flaxlike

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Summary lists a model's layers and variables, with totals.
type Summary struct {
	managed.Summary
	Layers []LayerRow
	Arrows []Arrow
	// Inputs are the fields that the network takes, as in the batch that built it last.
	Inputs map[string]shapes.Shape
	// Outputs are the kinds of the outputs ([Prediction.Kind]).
	Outputs map[string]string
}

// Arrow connects a layer with one whose output it uses.
type Arrow struct {
	// From and To are indices in [Summary.Layers]; From is -1 for an input of the network.
	From, To int
	// Input is the name of the field if From is -1.
	Input string
}

// LayerRow is a layer in a [Summary], of package nn or custom, with the layers that it calls. Variables outside of
// layers have rows of the kind "variables" without an output, and outputs of a [Functional] the kind "output".
type LayerRow struct {
	Name string
	Kind string
	// Output is the shape for the batch size that built the model last.
	Output shapes.Shape
	// Size is the number of elements of its variables, with inner layers. Fixed counts untrained ones, such as the
	// statistics of a BatchNorm.
	Size, Fixed int64
}

// Summary lists the layers in the order of their calls, and all variables. It is empty before the first batch
// ([Model.Init]).
func (m *Model) Summary() Summary {
	m.seen.mu.Lock()
	layers, arrows, inputs := m.seen.layers, m.seen.arrows, m.seen.inputs
	s := Summary{Arrows: slices.Clone(arrows), Inputs: map[string]shapes.Shape{}, Outputs: map[string]string{}}
	for name, of := range m.seen.odds {
		s.Outputs[name] = of.kind(m.seen.widths[name])
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
		if l.Kind == output {
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
			rest = append(rest, LayerRow{Name: name, Kind: others})
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

func (l *LayerRow) add(v managed.Row) {
	l.Size += v.Size
	if v.Kind != managed.Parameter {
		l.Fixed += v.Size
	}
}

// String returns the table of layers, with totals of variables. The embedded Summary prints the variables.
func (s Summary) String() string {
	if len(s.Layers) == 0 {
		return s.Summary.String()
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "layer\tkind\toutput\tsize")
	for _, l := range s.Layers {
		shape := ""
		if l.Kind != others {
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

const (
	output = "output"
	others = "variables"
)

type layerRow struct {
	LayerRow
	took map[string]bool
	// y is the layer's output; the rows until end are inner layers.
	y   *graph.Node
	end int
}

type trace struct {
	rows []layerRow
	// own counts the custom layers being called.
	own int
	// seen receives the bounds of input fields.
	inputs   map[*graph.Node]string
	seen     *seen
	settings map[string]string
}

func (t *trace) Layer(l any, own, held bool, scope *model.Scope, x *graph.Node, build layering.Build) *graph.Node {
	if reflect.TypeOf(l).Kind() != reflect.Func {
		note(t.settings, placeOfScope(scope), l)
	}
	if !held && t.own > 0 {
		return build(scope, x)
	}
	if own {
		t.own++
		defer func() { t.own-- }()
	}
	return t.row(layering.Kind(l), build, scope, x)
}

func placeOfScope(scope *model.Scope) string {
	return strings.TrimPrefix(strings.TrimPrefix(scope.Scope(), "/"+modelScope), "/")
}

func (t *trace) Indices(x *graph.Node, n int) {
	if field := t.fieldOf(x); field != "" {
		t.seen.take(bound{field: field, kind: "integer", input: true, high: float64(n - 1), class: true,
			why: fmt.Sprintf("the Embedding has %d", n), hint: "make its vocabulary larger, or number the tokens from 0"})
	}
}

func (t *trace) row(kind string, build layering.Build, scope *model.Scope, x *graph.Node) *graph.Node {
	at := len(t.rows)
	t.rows = append(t.rows, layerRow{LayerRow: LayerRow{Name: placeOfScope(scope), Kind: kind}})
	before := used(scope, x)
	y := build(scope, x)
	if y == nil {
		return nil
	}
	t.rows[at].Output, t.rows[at].took = y.Shape(), used(scope, x)
	t.rows[at].y, t.rows[at].end = y, len(t.rows)
	for path := range before {
		delete(t.rows[at].took, path)
	}
	if len(t.rows[at].took) == 0 { // it may be called again, with the same variables
		for _, r := range t.rows[:at] {
			if r.Name == t.rows[at].Name && r.Kind == kind && len(r.took) > 0 {
				t.rows[at].took = r.took
			}
		}
	}
	return y
}

func used(scope *model.Scope, x *graph.Node) map[string]bool {
	paths := map[string]bool{}
	for v := range scope.Store().IterVariables() {
		if v.InUseByGraph(x.Graph()) {
			paths[v.Path()] = true
		}
	}
	return paths
}

func (t *trace) rowsOf(n nn.Layer, out map[string]*graph.Node) (rows []layerRow, arrows []Arrow) {
	if _, named := n.(Functional); named {
		for _, name := range slices.Sorted(maps.Keys(out)) {
			row := LayerRow{Name: name, Kind: output, Output: out[name].Shape()}
			t.rows = append(t.rows, layerRow{LayerRow: row, y: out[name], end: len(t.rows) + 1})
		}
	}
	givers := map[*graph.Node][]int{}
	places := make([]int, len(t.rows))
	for i, r := range t.rows {
		places[i] = -1
		places[i] = len(rows)
		if r.Kind != output {
			givers[r.y] = append(givers[r.y], i)
		}
		rows = append(rows, r)
		rows[places[i]].y = nil
		for _, a := range t.arrowsTo(i, givers) {
			if a.From >= 0 {
				a.From = places[a.From]
			}
			a.To = places[i]
			arrows = append(arrows, a)
		}
	}
	return rows, arrows
}

func (t *trace) arrowsTo(to int, givers map[*graph.Node][]int) (arrows []Arrow) {
	been := map[*graph.Node]bool{}
	var walk func(n *graph.Node)
	walk = func(n *graph.Node) {
		if been[n] {
			return
		}
		been[n] = true
		from := -1
		for _, i := range slices.Backward(givers[n]) {
			if i < to && t.rows[i].end <= to && (from < 0 || t.rows[i].end > from) {
				from = i
			}
		}
		input, taken := t.inputs[n]
		switch {
		case from >= 0:
			arrows = append(arrows, Arrow{From: from})
		case taken:
			arrows = append(arrows, Arrow{From: -1, Input: input})
		default:
			for _, of := range n.Inputs() {
				walk(of)
			}
		}
	}
	walk(t.rows[to].y)
	return arrows
}
