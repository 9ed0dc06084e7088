package metrics

import (
	"math"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Min is the minimum of all elements of its input without those of weight 0. Without examples it is +Inf.
func Min() Metric { return extreme{"Min", math.Inf(1), graph.Min, graph.ReduceAllMin} }

// Max is the maximum of all elements of its input without those of weight 0. Without examples it is -Inf.
func Max() Metric { return extreme{"Max", math.Inf(-1), graph.Max, graph.ReduceAllMax} }

type extreme struct {
	name    string
	initial float64
	of      func(a, b *graph.Node) *graph.Node
	reduce  func(*graph.Node) *graph.Node
}

func (e extreme) Accumulators() []Accumulator {
	return []Accumulator{{Name: "extreme", Shape: shapes.Make(dtype), Initial: e.initial}}
}

func (e extreme) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	take(e.name, inputs, "values")
	w, x := weigh(e.name, weights, inputs[0]), graph.ConvertDType(inputs[0], dtype)
	none := graph.FillScalar(x.Graph(), x.Shape(), e.initial)
	return e.Merge(acc, []*graph.Node{e.reduce(graph.Where(graph.Equal(w, graph.ZerosLike(w)), none, x))})
}

func (e extreme) Merge(a, b []*graph.Node) []*graph.Node {
	check(e.name, e.Accumulators(), a)
	check(e.name, e.Accumulators(), b)
	return []*graph.Node{e.of(a[0], b[0])}
}

func (e extreme) Compute(acc []*graph.Node) []Value {
	check(e.name, e.Accumulators(), acc)
	return single(acc[0])
}

// Last is the weighted mean of all elements of its input over the last batch that had examples. Its Reduce averages
// over devices, as clu's LastValue.
func Last() Metric { return last{} }

type last struct{}

func (last) Accumulators() []Accumulator { return scalars("total", "weight") }

func (l last) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	take("Last", inputs, "values")
	w := weigh("Last", weights, inputs[0])
	return l.Merge(acc, []*graph.Node{total(w, inputs[0]), graph.ReduceAllSum(w)})
}

func (l last) Merge(a, b []*graph.Node) []*graph.Node {
	check("Last", l.Accumulators(), a)
	check("Last", l.Accumulators(), b)
	none := graph.Equal(b[1], graph.ScalarZero(b[1].Graph(), dtype))
	return []*graph.Node{graph.Where(none, a[0], b[0]), graph.Where(none, a[1], b[1])}
}

func (l last) Reduce(a, b []*graph.Node) []*graph.Node {
	check("Last", l.Accumulators(), a)
	check("Last", l.Accumulators(), b)
	return []*graph.Node{graph.Add(a[0], b[0]), graph.Add(a[1], b[1])}
}

func (l last) Compute(acc []*graph.Node) []Value {
	check("Last", l.Accumulators(), acc)
	return single(graph.Div(acc[0], acc[1]))
}
