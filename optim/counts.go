package optim

import (
	"iter"
	"maps"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/awaited"
	"github.com/lazo-ml/lazo/internal/packs"
)

// counts is one variable with the counts of parameters that a link first sees in the same step with equal counts.
// With an element per parameter XLA would compile the rule for each.
type counts struct {
	variable *model.Variable
	equal    bool
	// gates has the gate of each element that this step counts; nil always counts.
	gates map[int]*graph.Node
}

type count struct {
	in *counts
	at int
}

type factor struct {
	of         *counts
	ahead, key float64
}

const perParameter, countSlot = "parameters", "count"

func countsIn(store *model.Store) map[string]count {
	all := map[string]count{}
	for v := range store.IterVariables() {
		c := &counts{variable: v, gates: map[int]*graph.Node{}}
		for at, name := range packs.Names(store, v.Path()) {
			all[name] = count{c, at}
		}
	}
	return all
}

func (s *Step) counted(p *Parameter) count {
	link := p.gatedBy
	if link == "" {
		link = model.JoinPath(scopeIn(s.model), perParameter)
	}
	nameOf := func(p *Parameter) string { return model.JoinPath(link, p.Name(), countSlot) }
	if _, there := s.counts[nameOf(p)]; !there {
		saved := awaited.Of(s.graph).Saved
		if saved == nil {
			saved = func(string) int64 { return 0 }
		}
		names, begins := []string{nameOf(p)}, saved(nameOf(p))
		for other := range s.Parameters() {
			_, there := s.counts[nameOf(other)]
			if !there && other != p && other.gatedBy == p.gatedBy && other.gate == p.gate && saved(nameOf(other)) == begins {
				names = append(names, nameOf(other))
			}
		}
		c := &counts{variable: s.pack(link, names), gates: map[int]*graph.Node{}}
		for at, name := range names {
			s.counts[name] = count{c, at}
		}
	}
	c := s.counts[nameOf(p)]
	if len(c.in.gates) == 0 {
		gates := map[int]*graph.Node{}
		for other := range s.all() {
			if of, there := s.counts[nameOf(other)]; there && of.in == c.in && other.gatedBy == p.gatedBy && other.gate == p.gate {
				gates[of.at] = p.gate
			}
		}
		s.together(c.in, gates)
	}
	c.in.gates[c.at] = p.gate
	return c
}

func (s *Step) pack(link string, names []string) *model.Variable {
	store, n := s.model.Store(), 1
	for store.GetVariable(packs.Path(link, n)) != nil {
		n++
	}
	packs.Note(store, packs.Path(link, n), names)
	return store.VariableWithValue(packs.Path(link, n), make([]int64, len(names))).SetTrainable(false)
}

func (s *Step) all() iter.Seq[*Parameter] { return s.in("", s.trained).Parameters() }

// together computes with one count if all are equal and updated together.
func (s *Step) together(c *counts, gates map[int]*graph.Node) {
	store, equal := s.model.Store(), awaited.Of(s.graph).Equal
	switch {
	case len(gates) < c.variable.Shape().Size():
		packs.SetApart(store, c.variable.Path())
	case equal != nil && !packs.Apart(store, c.variable.Path()):
		equal(c.variable)
		c.equal, c.gates = true, gates
	}
}

func (c *counts) node(g *graph.Graph) *graph.Node {
	all := c.variable.NodeValue(g)
	if c.equal {
		return count{at: 0}.of(all)
	}
	return all
}

func (c count) pick(from *graph.Node) *graph.Node {
	if c.in.equal {
		return from
	}
	return c.of(from)
}

func (c count) of(all *graph.Node) *graph.Node {
	return graph.Reshape(graph.Slice(all, graph.AxisRange(c.at, c.at+1)))
}

func (s *Step) setCounts() {
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		c := s.counts[name]
		if len(c.in.gates) == 0 || c.at > 0 {
			continue
		}
		before := c.in.variable.NodeValue(s.graph)
		c.in.variable.SetNodeValue(graph.Add(before, c.in.updates(before)))
	}
}

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
