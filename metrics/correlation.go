package metrics

import (
	"github.com/gomlx/gomlx/core/graph"
)

// Pearson is the linear correlation of targets and predictions, its two inputs, of one shape: from -1 to 1. It is the
// mean over columnCount columns, the elements of the last axis; inputs [examples] have one column. If targets or
// predictions of a column are constant, it is NaN.
func Pearson(columnCount int) Metric {
	return correlation{columns(columnCount), "Pearson", func(x, y moments, together *graph.Node) *graph.Node {
		return graph.Div(together, graph.Mul(graph.Sqrt(x.squares), graph.Sqrt(y.squares)))
	}}
}

// Concordance is Lin's coefficient (1989): [Pearson] that also penalizes differences of mean and scale. If targets and
// predictions of a column are all one number, it is NaN.
func Concordance(columnCount int) Metric {
	return correlation{columns(columnCount), "Concordance", func(x, y moments, together *graph.Node) *graph.Node {
		apart := graph.Mul(x.weight, graph.Square(graph.Sub(x.mean, y.mean)))
		return graph.Div(graph.MulScalar(together, 2), graph.Add(graph.Add(x.squares, y.squares), apart))
	}}
}

type correlation struct {
	columns
	name string
	of   func(x, y moments, together *graph.Node) *graph.Node
}

func (c correlation) Accumulators() []Accumulator {
	return c.accumulators("weight", "mean of targets", "mean of predictions", "squares of targets", "squares of predictions", "products")
}

func (c correlation) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	w, targets, predictions := c.read(c.name, weights, inputs)
	x, y := c.moments(w, targets), c.moments(w, predictions)
	off := graph.Mul(c.less(w, targets, x.mean), c.less(w, predictions, y.mean))
	return c.Merge(acc, packed(x, y, c.total(w, off)))
}

func packed(x, y moments, together *graph.Node) []*graph.Node {
	return []*graph.Node{x.weight, x.mean, y.mean, x.squares, y.squares, together}
}

func (c correlation) sides(acc []*graph.Node) (x, y moments, together *graph.Node) {
	check(c.name, c.Accumulators(), acc)
	return moments{acc[0], acc[1], acc[3]}, moments{acc[0], acc[2], acc[4]}, acc[5]
}

func (c correlation) Merge(a, b []*graph.Node) []*graph.Node {
	x, y, together := c.sides(a)
	u, v, more := c.sides(b)
	apart := graph.Mul(graph.Sub(u.mean, x.mean), graph.Sub(v.mean, y.mean))
	between := graph.Mul(apart, graph.Mul(x.weight, ratio(u.weight, graph.Add(x.weight, u.weight))))
	return packed(x.join(u), y.join(v), graph.Add(graph.Add(together, more), between))
}

func (c correlation) Compute(acc []*graph.Node) []Value {
	return single(graph.ReduceAllMean(c.of(c.sides(acc))))
}
