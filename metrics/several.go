package metrics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// AtThresholds has the values of m at several thresholds, named as these: "0.5". m is [MultiLabel] of a metric, or of
// classes 0 and 1, like Precision(2, Binary). The inputs are labels, 0 or 1 of any dtype, and predictions of their
// shape. For another label, or a NaN, a value is NaN.
func AtThresholds(m Metric, thresholds ...float64) Metric {
	var all Collection
	for _, threshold := range thresholds {
		all = append(all, Entry{Name: strconv.FormatFloat(threshold, 'g', -1, 64), Inputs: []string{"labels", "predictions"},
			Metric: MapInputs(m, func(in []*graph.Node) []*graph.Node {
				return []*graph.Node{zeroOrOne(in[0]), Threshold(in[1], threshold)}
			})})
	}
	return atThresholds{all}
}

type atThresholds struct{ Collection }

func (a atThresholds) Accumulators() []Accumulator {
	all := a.Collection.Accumulators()
	for i := range all {
		all[i].Name = strings.ReplaceAll(all[i].Name, "/", "_")
	}
	return all
}

func (a atThresholds) Update(acc []*graph.Node, weights *graph.Node, in ...*graph.Node) []*graph.Node {
	take("AtThresholds", in, "labels", "predictions")
	if len(a.Collection) == 0 || !in[0].Shape().EqualDimensions(in[1].Shape()) {
		panic(fmt.Errorf("metrics: AtThresholds: expected at least 1 threshold, and labels and predictions of the same dimensions, "+
			"got %d thresholds, labels %s and predictions %s", len(a.Collection), in[0].Shape(), in[1].Shape()))
	}
	outputs, all := map[string]*graph.Node{"labels": in[0], "predictions": in[1]}, slices.Clone(a.Collection)
	if weights != nil {
		outputs["weights"] = weights
		for i := range all {
			all[i].Weights = "weights"
		}
	}
	return all.Update(acc, outputs)
}

func zeroOrOne(labels *graph.Node) *graph.Node {
	x := graph.ConvertDType(labels, dtype)
	is := func(v float64) *graph.Node { return graph.Equal(x, graph.Scalar(x.Graph(), dtype, v)) }
	value := func(v int) *graph.Node {
		return graph.FillScalar(x.Graph(), shapes.Make(classType, x.Shape().Dimensions...), float64(v))
	}
	return graph.Where(is(1), value(1), graph.Where(is(0), value(0), value(noClass)))
}

// Each names an array's elements, like the scores of [PerClass]: each is logged as a number.
func Each(m Metric, names ...string) Metric { return each{m, slices.Clone(names)} }

type each struct {
	Metric
	names []string
}

func (e each) Reduce(a, b []*graph.Node) []*graph.Node { return Reduce(e.Metric, a, b) }

func (e each) Compute(acc []*graph.Node) []Value {
	var all []Value
	for _, v := range e.Metric.Compute(acc) {
		if s := v.Node.Shape(); s.Rank() != 1 || s.Dimensions[0] != len(e.names) {
			panic(fmt.Errorf("metrics: Each: the value is %s, expected an array of %d numbers, as many as the names %q", s, len(e.names), e.names))
		}
		for i, name := range e.names {
			if v.Name != "" {
				name = v.Name + "/" + name
			}
			all = append(all, Value{name, graph.Reshape(graph.Slice(v.Node, graph.AxisElem(i)))})
		}
	}
	return all
}
