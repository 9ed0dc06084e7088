package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// columns are the elements of the last axis; one column's accumulators are scalars.
type columns int

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

func (c columns) accumulators(names ...string) []Accumulator {
	list := scalars(names...)
	for i := range list {
		if c > 1 {
			list[i].Shape = shapes.Make(dtype, int(c))
		}
	}
	return list
}

func (c columns) sum(x *graph.Node) *graph.Node {
	if c > 1 {
		return graph.ReduceSum(x, 0)
	}
	return graph.ReduceAllSum(x)
}

func (c columns) total(weights, x *graph.Node) *graph.Node {
	return c.sum(graph.Mul(weights, counted(weights, x)))
}

func (c columns) less(weights, x, mean *graph.Node) *graph.Node {
	if c > 1 {
		mean = graph.ExpandAxes(mean, 0)
	}
	return graph.Sub(counted(weights, x), mean)
}

// moments are combined as in Chan, Golub and LeVeque (1979). A sum of squares would be imprecise for a large mean.
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

// StandardDeviation is the weighted population standard deviation (divided by n, not n-1) of all elements of its input.
func StandardDeviation() Metric { return standardDeviation{} }

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

// R2 is the coefficient of determination of predictions for targets, with inputs and columns as in [Pearson]. If all
// targets of a column are equal it is -Inf, or NaN if all predictions equal them.
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
