package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/graphs"
)

func run(l autodiff.Loop, g *graph.Graph, what string, carry, places []*graph.Node, body func(carry, at []*graph.Node) (next, out []*graph.Node)) (last, outs []*graph.Node) {
	v := variablesOf(g, what)
	last, outs = l.Run(g, carry, places, nil, func(carry, at, _ []*graph.Node) (next, out []*graph.Node) { return body(carry, at) },
		v.changed)
	v.set(last[len(carry):])
	return last[:len(carry)], outs
}

type variables struct {
	what   string // the body's owner, for messages
	first  int
	store  *model.Store
	graph  *graph.Graph
	before map[*model.Variable]*graph.Node
	sets   []*model.Variable
}

func variablesOf(g *graph.Graph, what string) *variables {
	v := &variables{what: what, first: len(g.Nodes()), store: model.GetStore(g), graph: g, before: map[*model.Variable]*graph.Node{}}
	for _, of := range v.used() {
		v.before[of] = of.NodeValue(g)
	}
	return v
}

func (v *variables) used() (list []*model.Variable) {
	if v.store == nil {
		return nil
	}
	for of := range v.store.IterVariables() {
		if of.InUseByGraph(v.graph) {
			list = append(list, of)
		}
	}
	slices.SortFunc(list, func(a, b *model.Variable) int { return strings.Compare(a.Path(), b.Path()) })
	return list
}

// changed returns the variables that the body has set, before and after it. It refuses random numbers whose state is
// not carried.
func (v *variables) changed() (before, after []*graph.Node) {
	draws := func(n *graph.Node) bool { return n.Type() == graph.NodeTypeRNGBitGenerator }
	if v.store == nil && slices.ContainsFunc(v.graph.Nodes()[v.first:], draws) {
		panic(fmt.Errorf("ops: %s: the body draws random numbers, which would be the same in each turn: use them in a step of package managed, or carry their state", v.what))
	}
	for _, of := range v.used() {
		was, known := v.before[of]
		if !known {
			was = v.graph.GetParameterByName(of.Path())
		}
		now := of.NodeValue(v.graph)
		if now == was {
			continue
		}
		if !now.Shape().Equal(was.Shape()) {
			panic(fmt.Errorf("ops: variable %q is set to %s in a body, expected %s", of.Path(), now.Shape(), was.Shape()))
		}
		before, after, v.sets = append(before, was), append(after, now), append(v.sets, of)
	}
	return before, after
}

func (v *variables) set(values []*graph.Node) {
	for i, of := range v.sets {
		of.SetNodeValue(values[i])
	}
}

func (v *variables) taken() map[*model.Variable][2]*graph.Node {
	before, after := v.changed()
	changes := map[*model.Variable][2]*graph.Node{}
	for i, of := range v.sets {
		changes[of] = [2]*graph.Node{before[i], after[i]}
		of.SetNodeValue(before[i])
	}
	v.sets = nil
	return changes
}

// again prepares call i of a body: In then returns the same scopes as in call 0.
func again(g *graph.Graph, i int) (done func()) {
	if f, ok := model.GetGraphParam(g, graphs.AgainParam); ok && i > 0 {
		return f.(func() (done func()))()
	}
	return func() {}
}

func checkCarry(what string, carry, next []*graph.Node) {
	if len(next) != len(carry) {
		panic(fmt.Errorf("ops: %s: the body returns %d carried values, expected %d, as it receives", what, len(next), len(carry)))
	}
	for i, n := range next {
		if n == nil || !n.Shape().Equal(carry[i].Shape()) {
			panic(fmt.Errorf("ops: %s: the body returns carried value %d as %s, expected %s, as it receives", what, i, n.Shape(), carry[i].Shape()))
		}
	}
}

func checkGiven(what string, nodes []*graph.Node) {
	for i, n := range nodes {
		if n == nil {
			panic(fmt.Errorf("ops: %s %d is nil", what, i))
		}
	}
}
