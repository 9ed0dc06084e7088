package metrics

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	_ "github.com/lazo-ml/lazo/internal/autodiff" // right gradients
)

const dtype = dtypes.Float64

// Metric computes values over many batches. A Metric is immutable and serves any number of runs. Its methods build the
// graph, and panic with an error if inputs do not fit.
//
// The accumulators of this package are float64. Integers are exact to 9e15. A sum of 1e8 numbers of one sign has a
// relative error of at most 1.2e-8. TPUs emulate float64 with 48 of its 53 bits: integers are exact to 2.8e14. A plugin
// without float64 returns an error at the first step.
type Metric interface {
	// Accumulators describes the accumulators, the same in each call.
	Accumulators() []Accumulator
	// Update returns the accumulators with a batch added.
	//
	// weights is bool (a mask), integers or floats, not negative; nil means 1. For examples [batch, time] its
	// dimensions are [batch, time], [batch], or a scalar. An example of weight 0 has no effect, even if its inputs
	// are NaN or no class.
	Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node
	// Merge combines accumulators of different batches, those of b later or of the same time. Accumulators without a
	// batch have no effect.
	Merge(a, b []*graph.Node) []*graph.Node
	// Compute returns the values over all batches: one without a name, or several with names.
	Compute(acc []*graph.Node) []Value
}

// Accumulator describes a value that a metric keeps between batches.
type Accumulator struct {
	Name  string
	Shape shapes.Shape
	// Initial is the value of all elements before the first batch.
	Initial float64
}

// Value is a result of a metric, usually a scalar.
type Value struct {
	Name string
	Node *graph.Node
}

type reducer interface {
	Reduce(a, b []*graph.Node) []*graph.Node
}

// Reduce combines accumulators that several devices or processes gathered concurrently, by m's method Reduce(a, b
// []*graph.Node) []*graph.Node, as [Last] has, else by Merge.
func Reduce(m Metric, a, b []*graph.Node) []*graph.Node {
	if r, ok := m.(reducer); ok {
		return r.Reduce(a, b)
	}
	return m.Merge(a, b)
}

// Initial returns the accumulators before the first batch.
func Initial(m Metric, g *graph.Graph) []*graph.Node { return initial(m.Accumulators(), g) }

func initial(list []Accumulator, g *graph.Graph) []*graph.Node {
	nodes := make([]*graph.Node, len(list))
	for i, a := range list {
		nodes[i] = graph.FillScalar(g, a.Shape, a.Initial)
	}
	return nodes
}

func scalars(names ...string) []Accumulator {
	list := make([]Accumulator, len(names))
	for i, name := range names {
		list[i] = Accumulator{Name: name, Shape: shapes.Make(dtype)}
	}
	return list
}

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
