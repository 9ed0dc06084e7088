package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// columns is how many figures a metric of numbers gathers next to each other, one for each number of the last axis. The
// accumulators of one column are scalars.
type columns int

// read gives targets and predictions as float64 and the weight of each: [examples, columns], or of one column as they
// are.
func (c columns) read(name string, weights *graph.Node, inputs []*graph.Node) (w, targets, predictions *graph.Node) {
	targets, predictions = pair(name, inputs)
	last := 1
	if targets.Rank() > 1 {
		last = targets.Shape().Dim(-1)
	}
	if c < 1 || last != int(c) {
		panic(fmt.Errorf("metrics: %s(%d): the targets %s have %d columns, the numbers of the last axis: expected %s(%d), "+
			"or a Reshape to [examples] for one population", name, int(c), inputs[0].Shape(), last, name, last))
	}
	w = weigh(name, weights, targets)
	if c > 1 {
		flat := func(x *graph.Node) *graph.Node { return graph.Reshape(x, -1, int(c)) }
		w, targets, predictions = flat(w), flat(targets), flat(predictions)
	}
	return w, targets, predictions
}

// accumulators are numbers of each column that start at 0.
func (c columns) accumulators(names ...string) []Accumulator {
	list := scalars(names...)
	for i := range list {
		if c > 1 {
			list[i].Shape = shapes.Make(dtype, int(c))
		}
	}
	return list
}

// sum is that of each column.
func (c columns) sum(x *graph.Node) *graph.Node {
	if c > 1 {
		return graph.ReduceSum(x, 0)
	}
	return graph.ReduceAllSum(x)
}

// total is the weighted sum of each column.
func (c columns) total(weights, x *graph.Node) *graph.Node {
	return c.sum(graph.Mul(weights, counted(weights, x)))
}

// less is x less the mean of its column, and of no account where an example does not count.
func (c columns) less(weights, x, mean *graph.Node) *graph.Node {
	if c > 1 {
		mean = graph.ExpandAxes(mean, 0)
	}
	return graph.Sub(counted(weights, x), mean)
}

// moments are the weight, the mean, and the sum of squared distances from that mean, of numbers gathered so far. Joined
// by the rule of Chan, Golub and LeVeque (Updating Formulae and a Pairwise Algorithm for Computing Sample Variances,
// 1979), they keep the digits that a sum of squares loses where the mean is large.
type moments struct{ weight, mean, squares *graph.Node }

func (c columns) moments(weights, x *graph.Node) moments {
	weight := c.sum(weights)
	mean := ratio(c.total(weights, x), weight)
	return moments{weight, mean, c.total(weights, graph.Square(c.less(weights, x, mean)))}
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

func (m moments) variance() *graph.Node { return graph.Div(m.squares, m.weight) }

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

func (s standardDeviation) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	take(deviationName, inputs, "values")
	m := columns(1).moments(weigh(deviationName, weights, inputs[0]), inputs[0])
	return s.Merge(acc, []*graph.Node{m.weight, m.mean, m.squares})
}

func (s standardDeviation) Merge(a, b []*graph.Node) []*graph.Node {
	check(deviationName, s.Accumulators(), a)
	check(deviationName, s.Accumulators(), b)
	m := moments{a[0], a[1], a[2]}.join(moments{b[0], b[1], b[2]})
	return []*graph.Node{m.weight, m.mean, m.squares}
}

func (s standardDeviation) Compute(acc []*graph.Node) []Value {
	check(deviationName, s.Accumulators(), acc)
	return single(graph.Sqrt(moments{acc[0], acc[1], acc[2]}.variance()))
}

// R2 is the coefficient of determination of predictions for targets, its two inputs, of one shape: 1 less the share of
// the targets' variance that the predictions leave. It is the mean over so many columns, the numbers of the last axis;
// inputs [examples] have one. Where all targets of a column are equal it is -Inf, or NaN if they are all met.
func R2(columnCount int) Metric { return r2{columns(columnCount)} }

type r2 struct{ columns }

func (r r2) Accumulators() []Accumulator {
	return r.accumulators("weight", "mean", "squares", "residual")
}

func (r r2) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	w, targets, predictions := r.read("R2", weights, inputs)
	m := r.moments(w, targets)
	return r.Merge(acc, []*graph.Node{m.weight, m.mean, m.squares, r.total(w, graph.Square(graph.Sub(predictions, targets)))})
}

func (r r2) Merge(a, b []*graph.Node) []*graph.Node {
	check("R2", r.Accumulators(), a)
	check("R2", r.Accumulators(), b)
	m := moments{a[0], a[1], a[2]}.join(moments{b[0], b[1], b[2]})
	return []*graph.Node{m.weight, m.mean, m.squares, graph.Add(a[3], b[3])}
}

func (r r2) Compute(acc []*graph.Node) []Value {
	check("R2", r.Accumulators(), acc)
	return single(graph.ReduceAllMean(graph.OneMinus(graph.Div(acc[3], acc[2]))))
}
