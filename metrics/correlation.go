package metrics

import (
	"github.com/gomlx/gomlx/core/graph"
)

// Pearson is the linear correlation of targets and predictions, its two inputs, of one shape: from -1 to 1. All
// elements are taken as one population; each is an example. Where all of one side are equal it is NaN.
func Pearson() Metric {
	return correlation{"Pearson", func(x, y moments, together *Node) *Node {
		return graph.Div(together, graph.Mul(graph.Sqrt(x.squares), graph.Sqrt(y.squares)))
	}}
}

// Concordance is Lin's coefficient (1989): [Pearson] that also wants predictions of the targets' size, not only in line
// with them. Inputs and population are those of Pearson. Where all of both sides are one number it is NaN.
func Concordance() Metric {
	return correlation{"Concordance", func(x, y moments, together *Node) *Node {
		apart := graph.Mul(x.weight, graph.Square(graph.Sub(x.mean, y.mean)))
		return graph.Div(graph.MulScalar(together, 2), graph.Add(graph.Add(x.squares, y.squares), apart))
	}}
}

// correlation is a figure of the moments of targets and predictions, and of the sum of products of their distances from
// the means.
type correlation struct {
	name string
	of   func(x, y moments, together *Node) *Node
}

func (correlation) Accumulators() []Accumulator {
	return scalars("weight", "mean of targets", "mean of predictions", "squares of targets", "squares of predictions", "products")
}

func (c correlation) Update(acc []*Node, weights *Node, inputs ...*Node) []*Node {
	targets, predictions := pair(c.name, inputs)
	w := weigh(c.name, weights, targets)
	x, y := momentsOf(w, targets), momentsOf(w, predictions)
	off := graph.Mul(graph.Sub(counted(w, targets), x.mean), graph.Sub(counted(w, predictions), y.mean))
	return c.Merge(acc, packed(x, y, total(w, off)))
}

func packed(x, y moments, together *Node) []*Node {
	return []*Node{x.weight, x.mean, y.mean, x.squares, y.squares, together}
}

func (c correlation) sides(acc []*Node) (x, y moments, together *Node) {
	check(c.name, c.Accumulators(), acc)
	return moments{acc[0], acc[1], acc[3]}, moments{acc[0], acc[2], acc[4]}, acc[5]
}

func (c correlation) Merge(a, b []*Node) []*Node {
	x, y, together := c.sides(a)
	u, v, more := c.sides(b)
	apart := graph.Mul(graph.Sub(u.mean, x.mean), graph.Sub(v.mean, y.mean))
	between := graph.Mul(apart, graph.Mul(x.weight, ratio(u.weight, graph.Add(x.weight, u.weight))))
	return packed(x.join(u), y.join(v), graph.Add(graph.Add(together, more), between))
}

func (c correlation) Compute(acc []*Node) []Value { return single(c.of(c.sides(acc))) }
