package metrics

import (
	"github.com/gomlx/gomlx/core/graph"
)

type sums struct {
	name       string
	inputs     []string
	keeps      []Accumulator
	batch      func(weights *graph.Node, inputs []*graph.Node) []*graph.Node
	value      func(acc []*graph.Node) []Value
	multiLabel *sums
}

func (s *sums) Accumulators() []Accumulator { return s.keeps }

func (s *sums) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	take(s.name, inputs, s.inputs...)
	return s.Merge(acc, s.batch(weights, inputs))
}

func (s *sums) Merge(a, b []*graph.Node) []*graph.Node {
	check(s.name, s.keeps, a)
	check(s.name, s.keeps, b)
	both := make([]*graph.Node, len(a))
	for i := range a {
		both[i] = graph.Add(a[i], b[i])
	}
	return both
}

func (s *sums) Compute(acc []*graph.Node) []Value {
	check(s.name, s.keeps, acc)
	return s.value(acc)
}

func single(v *graph.Node) []Value { return []Value{{Node: v}} }

func newMean(name string, each func(inputs []*graph.Node) *graph.Node, after func(*graph.Node) *graph.Node, inputs ...string) Metric {
	return &sums{name: name, inputs: inputs, keeps: scalars("total", "weight"),
		batch: func(weights *graph.Node, inputs []*graph.Node) []*graph.Node {
			x := each(inputs)
			w := weigh(name, weights, x)
			return []*graph.Node{total(w, x), graph.ReduceAllSum(w)}
		},
		value: func(acc []*graph.Node) []Value {
			mean := graph.Div(acc[0], acc[1])
			if after != nil {
				mean = after(mean)
			}
			return single(mean)
		}}
}

// Mean is the weighted mean of all elements of its input. Each element is an example.
func Mean() Metric {
	return newMean("Mean", func(in []*graph.Node) *graph.Node { return in[0] }, nil, "values")
}

// Sum is the weighted sum of all elements of its input. Without examples it is 0.
func Sum() Metric {
	return &sums{name: "Sum", inputs: []string{"values"}, keeps: scalars("total"),
		batch: func(weights *graph.Node, in []*graph.Node) []*graph.Node {
			return []*graph.Node{total(weigh("Sum", weights, in[0]), in[0])}
		},
		value: func(acc []*graph.Node) []Value { return single(acc[0]) }}
}

// MapInputs applies m to f of the inputs: MapInputs(Mean(), f) is the mean of f. f does not see the weights, which must
// fit its result.
func MapInputs(m Metric, f func(inputs []*graph.Node) []*graph.Node) Metric { return mapped{m, f} }

type mapped struct {
	Metric
	f func(inputs []*graph.Node) []*graph.Node
}

func (m mapped) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	return m.Metric.Update(acc, weights, m.f(inputs)...)
}

func (m mapped) Reduce(a, b []*graph.Node) []*graph.Node { return Reduce(m.Metric, a, b) }
