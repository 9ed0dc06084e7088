package metrics

import (
	"github.com/gomlx/gomlx/core/graph"
)

// moments are the weight, the mean, and the sum of squared distances from that mean, of numbers gathered so far. Joined
// by the rule of Chan, Golub and LeVeque (Updating Formulae and a Pairwise Algorithm for Computing Sample Variances,
// 1979), they keep the digits that a sum of squares loses where the mean is large.
type moments struct{ weight, mean, squares *Node }

func momentsOf(weights, x *Node) moments {
	weight := graph.ReduceAllSum(weights)
	mean := ratio(total(weights, x), weight)
	x = counted(weights, x)
	return moments{weight, mean, total(weights, graph.Square(graph.Sub(x, mean)))}
}

func (m moments) join(n moments) moments {
	weight := graph.Add(m.weight, n.weight)
	share := ratio(n.weight, weight)
	apart := graph.Sub(n.mean, m.mean)
	return moments{
		weight:  weight,
		mean:    graph.Add(m.mean, graph.Mul(apart, share)),
		squares: graph.Add(graph.Add(m.squares, n.squares), graph.Mul(graph.Square(apart), graph.Mul(m.weight, share))),
	}
}

func (m moments) variance() *Node { return graph.Div(m.squares, m.weight) }

// StandardDeviation is the square root of the weighted mean squared distance of all elements of its input, values of
// any shape, from their mean: that of a population, divided by n and not n-1.
func StandardDeviation() Metric { return standardDeviation{} }

// standardDeviation joins means and squared distances: of sums and sums of squares a small deviation of large numbers
// would be 0.
type standardDeviation struct{}

const deviationName = "StandardDeviation"

func (standardDeviation) Accumulators() []Accumulator {
	return scalars("weight", "mean", "squares")
}

func (s standardDeviation) Update(acc []*Node, weights *Node, inputs ...*Node) []*Node {
	take(deviationName, inputs, "values")
	m := momentsOf(weigh(deviationName, weights, inputs[0]), inputs[0])
	return s.Merge(acc, []*Node{m.weight, m.mean, m.squares})
}

func (s standardDeviation) Merge(a, b []*Node) []*Node {
	check(deviationName, s.Accumulators(), a)
	check(deviationName, s.Accumulators(), b)
	m := moments{a[0], a[1], a[2]}.join(moments{b[0], b[1], b[2]})
	return []*Node{m.weight, m.mean, m.squares}
}

func (s standardDeviation) Compute(acc []*Node) []Value {
	check(deviationName, s.Accumulators(), acc)
	return single(graph.Sqrt(moments{acc[0], acc[1], acc[2]}.variance()))
}

// R2 is the coefficient of determination of predictions for targets, its two inputs, of one shape: 1 less the share of
// the targets' variance that the predictions leave. All elements are taken as one population. Where all targets are
// equal it is -Inf, or NaN if they are all met.
func R2() Metric { return r2{} }

type r2 struct{}

func (r2) Accumulators() []Accumulator { return scalars("weight", "mean", "squares", "residual") }

func (r r2) Update(acc []*Node, weights *Node, inputs ...*Node) []*Node {
	errors := difference("R2", inputs)
	w := weigh("R2", weights, errors)
	m := momentsOf(w, inputs[0])
	return r.Merge(acc, []*Node{m.weight, m.mean, m.squares, total(w, graph.Square(errors))})
}

func (r r2) Merge(a, b []*Node) []*Node {
	check("R2", r.Accumulators(), a)
	check("R2", r.Accumulators(), b)
	m := moments{a[0], a[1], a[2]}.join(moments{b[0], b[1], b[2]})
	return []*Node{m.weight, m.mean, m.squares, graph.Add(a[3], b[3])}
}

func (r r2) Compute(acc []*Node) []Value {
	check("R2", r.Accumulators(), acc)
	return single(graph.OneMinus(graph.Div(acc[3], acc[2])))
}
