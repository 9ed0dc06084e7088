package flaxlike

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Arrow connects a layer with one whose output it uses.
type Arrow struct {
	// From and To are indices in [Summary.Layers]; From is -1 for an input of the network.
	From, To int
	// Input is the field's name if From is -1.
	Input string
}

// LayerRow is a layer in a [Summary], with the layers that it calls. Variables outside of layers have rows of the kind
// "variables" without an output, and outputs of a [Functional] the kind "output".
type LayerRow struct {
	Name string
	Kind string
	// Output is the shape for the batch size that built the model last.
	Output shapes.Shape
	// Size is the number of elements of its variables, with inner layers. Fixed counts untrained ones, like the
	// statistics of a BatchNorm.
	Size, Fixed int64
}

func (l *LayerRow) add(v managed.Row) {
	l.Size += v.Size
	if v.Kind != managed.Parameter {
		l.Fixed += v.Size
	}
}

type layerRow struct {
	LayerRow
	took map[string]bool
	// the rows until end are inner layers
	y   *graph.Node
	end int
}

const (
	outputKind    = "output"
	variablesKind = "variables"
)

type trace struct {
	rows     []layerRow
	own      int
	inputs   map[*graph.Node]string
	take     func(bound) // of the fields that are inputs
	settings map[string]string
}

func (t *trace) Layer(l any, own, held bool, scope *model.Scope, x *graph.Node, build layering.Build) *graph.Node {
	if reflect.TypeOf(l).Kind() != reflect.Func {
		noteLayer(t.settings, placeOfScope(scope), l)
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

func (t *trace) Indices(x *graph.Node, n int) {
	if field := t.fieldOf(x); field != "" {
		t.take(bound{field: field, kind: "integer", input: true, high: float64(n - 1), class: true,
			why: fmt.Sprintf("the Embedding has %d", n), hint: "make its vocabulary larger, or number the tokens from 0"})
	}
}

func (t *trace) row(kind string, build layering.Build, scope *model.Scope, x *graph.Node) *graph.Node {
	at := len(t.rows)
	t.rows = append(t.rows, layerRow{LayerRow: LayerRow{Name: placeOfScope(scope), Kind: kind}})
	before := usedVariables(scope, x)
	y := build(scope, x)
	if y == nil {
		return nil
	}
	t.rows[at].Output, t.rows[at].took = y.Shape(), usedVariables(scope, x)
	t.rows[at].y, t.rows[at].end = y, len(t.rows)
	for path := range before {
		delete(t.rows[at].took, path)
	}
	if len(t.rows[at].took) == 0 { // called again, with the same variables
		for _, r := range t.rows[:at] {
			if r.Name == t.rows[at].Name && r.Kind == kind && len(r.took) > 0 {
				t.rows[at].took = r.took
			}
		}
	}
	return y
}

func placeOfScope(scope *model.Scope) string {
	return strings.TrimPrefix(strings.TrimPrefix(scope.Scope(), "/"+modelScope), "/")
}

func usedVariables(scope *model.Scope, x *graph.Node) map[string]bool {
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
			row := LayerRow{Name: name, Kind: outputKind, Output: out[name].Shape()}
			t.rows = append(t.rows, layerRow{LayerRow: row, y: out[name], end: len(t.rows) + 1})
		}
	}
	givers := map[*graph.Node][]int{}
	places := make([]int, len(t.rows))
	for i, r := range t.rows {
		places[i] = -1
		places[i] = len(rows)
		if r.Kind != outputKind {
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

func (t *trace) fieldOf(x *graph.Node) string {
	for {
		if name := t.inputs[x]; name != "" {
			return name
		}
		switch in := x.Inputs(); {
		case len(in) == 0:
			return ""
		case x.Type() == graph.NodeTypeIdentity, x.Type() == graph.NodeTypeReshape, x.Type() == graph.NodeTypeTranspose, x.Type() == graph.NodeTypeConvertDType && in[0].DType().IsInt():
			x = in[0]
		default:
			return ""
		}
	}
}

// numbersAlone bounds float inputs unless the network tests or clips them.
func (t *trace) numbersAlone(g *graph.Graph) {
	nan, infinite := map[string]bool{}, map[string]bool{}
	for _, n := range g.Nodes() {
		in := n.Inputs()
		switch n.Type() {
		case graph.NodeTypeIsNaN:
			nan[t.fieldOf(in[0])] = true
		case graph.NodeTypeIsFinite:
			nan[t.fieldOf(in[0])], infinite[t.fieldOf(in[0])] = true, true
		case graph.NodeTypeClamp:
			infinite[t.fieldOf(in[1])] = true
		case graph.NodeTypeMin, graph.NodeTypeMax:
			if of := in[0]; of.Type() != n.Type() && (of.Type() == graph.NodeTypeMin || of.Type() == graph.NodeTypeMax) {
				infinite[t.fieldOf(of.Inputs()[0])] = true
			}
		case graph.NodeTypeEqual, graph.NodeTypeNotEqual, graph.NodeTypeLessThan, graph.NodeTypeLessOrEqual, graph.NodeTypeGreaterThan, graph.NodeTypeGreaterOrEqual:
			for i, with := range in[:2] {
				of := in[1-i]
				if n.Type() == graph.NodeTypeNotEqual && of == with {
					nan[t.fieldOf(of)] = true
				}
				if of.Type() == graph.NodeTypeAbs {
					of = of.Inputs()[0]
				}
				if outputs.Infinite(with) {
					infinite[t.fieldOf(of)] = true
				}
			}
		}
	}
	for field, name := range t.inputs {
		r := bound{field: name, kind: "input", input: true, low: -math.MaxFloat64, high: math.MaxFloat64, orNaN: nan[name],
			why: "the network takes finite numbers: fill missing values (tables.Numbers has Fill), clip infinite ones, or leave such examples out (Set.Where)"}
		if infinite[name] {
			r.low, r.high = math.Inf(-1), math.Inf(1)
		}
		if field.DType().IsFloat() && !(nan[name] && infinite[name]) {
			t.take(r)
		}
	}
}
