package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/autodiff"
)

func shapeOf(t dtypes.DType, dims ...int) shapes.Shape { return shapes.Make(t, dims...) }

// run writes a loop whose body may set variables, which are carried along.
func run(l autodiff.Loop, g *graph.Graph, what string, carry, places []*Node, body func(carry, at []*Node) (next, out []*Node)) (last, outs []*Node) {
	v := variablesOf(g)
	first := len(g.Nodes())
	last, outs = l.Run(g, carry, places, nil, func(carry, at, _ []*Node) (next, out []*Node) { return body(carry, at) },
		func() (before, after []*Node) {
			before, after = v.changed()
			if len(before) == 0 && v.store == nil && drawsRandom(g, first) {
				panic(fmt.Errorf("flow: %s: the body draws random numbers, which would be the same in each turn: use them in a step of package managed, or carry their state", what))
			}
			return before, after
		})
	v.set(last[len(carry):])
	return last[:len(carry)], outs
}

func drawsRandom(g *graph.Graph, first int) bool {
	return slices.ContainsFunc(g.Nodes()[first:], func(n *Node) bool { return n.Type() == graph.NodeTypeRNGBitGenerator })
}

// variables are those of the graph's store, as they were before a body was traced.
type variables struct {
	store  *model.Store
	graph  *graph.Graph
	before map[*model.Variable]*Node
	sets   []*model.Variable
}

func variablesOf(g *graph.Graph) *variables {
	v := &variables{store: model.GetStore(g), graph: g, before: map[*model.Variable]*Node{}}
	for _, of := range v.used() {
		v.before[of] = of.NodeValue(g)
	}
	return v
}

// used are the variables that the graph has, by name.
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

// changed gives what the body has set, before and behind it.
func (v *variables) changed() (before, after []*Node) {
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
			panic(fmt.Errorf("flow: variable %q is set to %s in a body, expected %s", of.Path(), now.Shape(), was.Shape()))
		}
		before, after, v.sets = append(before, was), append(after, now), append(v.sets, of)
	}
	return before, after
}

// set gives the variables what the loop came to.
func (v *variables) set(values []*Node) {
	for i, of := range v.sets {
		of.SetNodeValue(values[i])
	}
}

func checkCarry(what string, carry, next []*Node) {
	if len(next) != len(carry) {
		panic(fmt.Errorf("flow: %s: the body gives %d carried values, expected %d as it is given", what, len(next), len(carry)))
	}
	for i, n := range next {
		if n == nil || !n.Shape().Equal(carry[i].Shape()) {
			panic(fmt.Errorf("flow: %s: carried value %d is %s when the body gives it, expected %s as it is given", what, i, n.Shape(), carry[i].Shape()))
		}
	}
}

func checkGiven(what string, nodes []*Node) {
	for i, n := range nodes {
		if n == nil {
			panic(fmt.Errorf("flow: %s %d is nil", what, i))
		}
	}
}
