package optim

import (
	"maps"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/packs"
)

// counts is a variable with the counts of several parameters: those that a link sees for the first time in one step. A
// variable for each parameter would be one more buffer that each run of the step's program takes and returns.
type counts struct {
	variable *model.Variable
	// gates are those of the elements that this step counts; a nil one always counts.
	gates map[int]*graph.Node
}

// count is an element of it.
type count struct {
	in *counts
	at int
}

// factor is what is computed from counts.
type factor struct {
	of         *counts
	ahead, key float64
}

// perParameter is the scope of the counts of updates, countSlot the name of each of them.
const perParameter, countSlot = "parameters", "count"

// countsIn are the counts that a store has, by their full names.
func countsIn(store *model.Store) map[string]count {
	all := map[string]count{}
	for v := range store.IterVariables() {
		c := &counts{variable: v, gates: map[int]*graph.Node{}}
		for at, name := range packs.Names(store, v) {
			all[name] = count{c, at}
		}
	}
	return all
}

// counted is the count of a parameter's updates that the link sees, which this step increments.
func (s *Step) counted(p *Parameter) count {
	link := p.gatedBy
	if link == "" {
		link = model.JoinPath(scopeIn(s.model), perParameter)
	}
	nameOf := func(p *Parameter) string { return model.JoinPath(link, p.Name(), countSlot) }
	if _, there := s.counts[nameOf(p)]; !there {
		names := []string{nameOf(p)}
		for other := range s.Parameters() {
			if _, there := s.counts[nameOf(other)]; !there && other != p && other.gatedBy == p.gatedBy {
				names = append(names, nameOf(other))
			}
		}
		c := &counts{packs.New(s.model.Store(), link, names), map[int]*graph.Node{}}
		for at, name := range names {
			s.counts[name] = count{c, at}
		}
	}
	c := s.counts[nameOf(p)]
	c.in.gates[c.at] = p.gate
	s.keeps(c.in.variable, p)
	return c
}

// pick is the element of a node that has one for each of the counts.
func (c count) pick(of *graph.Node) *graph.Node {
	return graph.Reshape(graph.Slice(of, graph.AxisRange(c.at, c.at+1)))
}

// setCounts gives the counts their values after the step.
func (s *Step) setCounts() {
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		c := s.counts[name]
		if len(c.in.gates) == 0 || c.at > 0 { // once for each variable
			continue
		}
		before := c.in.variable.NodeValue(s.graph)
		c.in.variable.SetNodeValue(graph.Add(before, c.in.updates(before)))
	}
}

// updates is 1 for each parameter that the step updates, else 0.
func (c *counts) updates(before *graph.Node) *graph.Node {
	g, n := before.Graph(), before.Shape().Size()
	counted := make([]int64, n)
	var gates []*graph.Node
	for at, gate := range c.gates {
		counted[at] = 1
		if !slices.Contains(gates, gate) {
			gates = append(gates, gate)
		}
	}
	if len(gates) == 1 {
		mask := graph.Const(g, counted)
		if gates[0] == nil {
			return mask
		}
		return graph.Mul(mask, graph.ConvertDType(gates[0], dtypes.Int64))
	}
	each := make([]*graph.Node, n)
	for at := range each {
		if each[at] = graph.Const(g, counted[at]); c.gates[at] != nil {
			each[at] = graph.ConvertDType(c.gates[at], dtypes.Int64)
		}
	}
	return graph.Stack(each, 0)
}
