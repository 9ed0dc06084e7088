package metrics

import (
	"fmt"
	"github.com/gomlx/gomlx/core/graph"
	"maps"
	"slices"
	"strings"
)

// Collection is several named metrics of named outputs of a step. Its methods are those of [Metric], but Update takes
// all outputs by name.
type Collection []Entry

// Entry is a metric of a [Collection].
type Entry struct {
	Name   string
	Metric Metric
	// Inputs names the metric's inputs, in order.
	Inputs []string
	// Weights names the examples' weights, often a mask. If empty, all are 1.
	Weights string
}

// Accumulators returns those of all metrics, with names like "accuracy/total".
func (c Collection) Accumulators() []Accumulator {
	var all []Accumulator
	for i, e := range c {
		if e.Name == "" || slices.ContainsFunc(c[:i], func(o Entry) bool { return o.Name == e.Name }) {
			panic(fmt.Errorf("metrics: collection: entry %d has the name %q: expected a name that is not empty and that no other entry has", i, e.Name))
		}
		if e.Metric == nil {
			panic(fmt.Errorf("metrics: collection: entry %q has no metric", e.Name))
		}
		for _, a := range e.Metric.Accumulators() {
			a.Name = e.Name + "/" + a.Name
			all = append(all, a)
		}
	}
	return all
}

// Initial is as the function [Initial].
func (c Collection) Initial(g *graph.Graph) []*graph.Node { return initial(c.Accumulators(), g) }

// Update is as [Metric]'s.
func (c Collection) Update(acc []*graph.Node, outputs map[string]*graph.Node) []*graph.Node {
	find := func(e Entry, name string) *graph.Node {
		if n := outputs[name]; n != nil {
			return n
		}
		names := slices.Sorted(maps.Keys(outputs))
		panic(fmt.Errorf("metrics: collection: %q needs the output %q; there are: %s", e.Name, name, strings.Join(names, ", ")))
	}
	return c.each(func(e Entry, acc ...[]*graph.Node) []*graph.Node {
		inputs := make([]*graph.Node, len(e.Inputs))
		for i, name := range e.Inputs {
			inputs[i] = find(e, name)
		}
		var weights *graph.Node
		if e.Weights != "" {
			weights = find(e, e.Weights)
		}
		return e.Metric.Update(acc[0], weights, inputs...)
	}, acc)
}

// Merge is as [Metric]'s.
func (c Collection) Merge(a, b []*graph.Node) []*graph.Node {
	return c.each(func(e Entry, acc ...[]*graph.Node) []*graph.Node { return e.Metric.Merge(acc[0], acc[1]) }, a, b)
}

// Reduce is as the function [Reduce].
func (c Collection) Reduce(a, b []*graph.Node) []*graph.Node {
	return c.each(func(e Entry, acc ...[]*graph.Node) []*graph.Node { return Reduce(e.Metric, acc[0], acc[1]) }, a, b)
}

// Compute returns the values of all metrics, named as the metric, or "scores/recall" for one of several values.
func (c Collection) Compute(acc []*graph.Node) []Value {
	var values []Value
	c.each(func(e Entry, acc ...[]*graph.Node) []*graph.Node {
		for _, v := range e.Metric.Compute(acc[0]) {
			if v.Name = e.Name + "/" + v.Name; v.Name == e.Name+"/" {
				v.Name = e.Name
			}
			values = append(values, v)
		}
		return nil
	}, acc)
	return values
}

func (c Collection) each(f func(e Entry, acc ...[]*graph.Node) []*graph.Node, acc ...[]*graph.Node) []*graph.Node {
	for _, a := range acc {
		check("collection", c.Accumulators(), a)
	}
	var all []*graph.Node
	from := 0
	for _, e := range c {
		to := from + len(e.Metric.Accumulators())
		parts := make([][]*graph.Node, len(acc))
		for i, a := range acc {
			parts[i] = a[from:to]
		}
		all = append(all, f(e, parts...)...)
		from = to
	}
	return all
}
