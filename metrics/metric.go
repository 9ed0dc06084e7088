package metrics

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	_ "github.com/lazo-ml/lazo/internal/autodiff" // a loss made of a metric's numbers has the right gradient
)

// dtype is the type of all accumulators; [Metric] says why.
const dtype = dtypes.Float64

// Metric says how a figure is gathered over many batches. What was gathered so far is in accumulators, which are nodes
// of a graph and belong to the caller: a Metric itself holds nothing that changes, and one value serves any number of
// runs.
//
// It sees each batch once. What needs a second look at the data, as a deviation from the mean of all, is a metric of a
// second evaluation that is given the result of the first.
//
// Its methods are graph functions: they build the graph, and panic with an error where inputs do not fit.
//
// The accumulators of this package are float64. Whole numbers are exact in it to 9e15, so 1e8 examples are counted
// exactly; a sum of 1e8 numbers of one sign, added one by one, is off by at most 1.2e-8 of itself.
//
// A float32 count would stand still at 16,777,216. A TPU keeps a float64 as two float32, which hold 48 of its 53 bits:
// whole numbers are exact there to 2.8e14. A device whose plugin compiles no float64 cannot run them: the error of the
// first step names the operation and its line.
type Metric interface {
	// Accumulators are what the metric keeps, the same at each call: names, shapes, and what they hold before the first
	// batch.
	Accumulators() []Accumulator
	// Update gives the accumulators with a batch added. Which inputs it takes is the metric's to say.
	//
	// weights tell how much each example counts: bool (a mask), integers or floats, none negative. Their dimensions are
	// the first ones of the examples: for examples [batch, time] they are [batch, time], [batch], or a scalar. Nil
	// stands for 1 each. An example of weight 0 changes nothing, even where its inputs are NaN or no class.
	Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node
	// Merge joins what was gathered over the batches of a with what was gathered over those of b, which came later or
	// at the same time. Accumulators without any batch change nothing.
	Merge(a, b []*graph.Node) []*graph.Node
	// Compute gives the figures of all batches so far: one value without a name, or several with one each. Without any
	// example a mean is NaN.
	Compute(acc []*graph.Node) []Value
}

// Accumulator describes one of the values that a metric keeps from batch to batch.
type Accumulator struct {
	Name  string
	Shape shapes.Shape
	// Initial is what all its elements are before the first batch and after a reset.
	Initial float64
}

// Value is a figure that a metric computes: a scalar for most, an array for some.
type Value struct {
	// Name tells it from the other values of the same metric; it is empty where there is but one.
	Name string
	Node *graph.Node
}

// reducer is a metric with the method of [Reduce].
type reducer interface {
	Reduce(a, b []*graph.Node) []*graph.Node
}

// Reduce joins what several devices or processes gathered at the same time: by the metric's Merge, or by its method
// Reduce(a, b []*graph.Node) []*graph.Node, if it has one that joins these otherwise, as [Last] has.
func Reduce(m Metric, a, b []*graph.Node) []*graph.Node {
	if r, ok := m.(reducer); ok {
		return r.Reduce(a, b)
	}
	return m.Merge(a, b)
}

// Initial gives the accumulators as they are before the first batch.
func Initial(m Metric, g *graph.Graph) []*graph.Node { return initial(m.Accumulators(), g) }

func initial(list []Accumulator, g *graph.Graph) []*graph.Node {
	nodes := make([]*graph.Node, len(list))
	for i, a := range list {
		nodes[i] = graph.FillScalar(g, a.Shape, a.Initial)
	}
	return nodes
}

// scalars are accumulators of one number each that start at 0.
func scalars(names ...string) []Accumulator {
	list := make([]Accumulator, len(names))
	for i, name := range names {
		list[i] = Accumulator{Name: name, Shape: shapes.Make(dtype)}
	}
	return list
}

// check panics where nodes are not a metric's accumulators. A leading axis too many is what accumulators of several
// devices have before they are reduced.
func check(name string, want []Accumulator, got []*graph.Node) {
	if len(got) != len(want) {
		panic(fmt.Errorf("metrics: %s: %d accumulators given, expected %d", name, len(got), len(want)))
	}
	for i, a := range want {
		if shape := got[i].Shape(); !shape.Equal(a.Shape) {
			panic(fmt.Errorf("metrics: %s: accumulator %q has shape %s, expected %s; those of several devices need Reduce first", name, a.Name, shape, a.Shape))
		}
	}
}

// take panics where a metric is not given the inputs that it names.
func take(name string, inputs []*graph.Node, names ...string) {
	if len(inputs) != len(names) {
		panic(fmt.Errorf("metrics: %s: %d inputs given, expected %d: %v", name, len(inputs), len(names), names))
	}
	for i, in := range inputs {
		if in == nil || in.DType().IsComplex() {
			panic(fmt.Errorf("metrics: %s: the %s must be real numbers, got %v", name, names[i], in))
		}
	}
}
