package autodiff

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// The operands are sorted again with their indices, then the adjoints by these.
func sorted(node *graph.Node, vs []*graph.Node) []*graph.Node {
	a, inputs := attributesOf(node), node.Inputs()
	axis := a.int("axis")
	stable := a.field("isStable", reflect.Bool).Bool()
	places := graph.Iota(node.Graph(), withType(inputs[0].Shape(), dtypes.Int32), axis)
	again := graph.SortFunc(withPlaces(node, a.function("comparator")), axis, stable, append(slices.Clone(inputs), places)...)
	from := again[len(inputs)]
	gradients := make([]*graph.Node, len(inputs))
	for i, x := range inputs {
		if differentiable(x.DType()) {
			gradients[i] = graph.SortFunc(byPlace(node.Graph(), x.DType()), axis, false, from, vs[i])[1]
		}
	}
	return gradients
}

func withType(s shapes.Shape, t dtypes.DType) shapes.Shape {
	s = s.Clone()
	s.DType = t
	return s
}

func withPlaces(node *graph.Node, comparator *graph.Function) *graph.Function {
	g, inputs := node.Graph(), node.Inputs()
	var nodes, params []*graph.Node
	for _, n := range g.Nodes()[:node.Id()] {
		switch {
		case n.Function() != comparator:
		case n.Type() == graph.NodeTypeParameter:
			params = append(params, n)
		default:
			nodes = append(nodes, n)
		}
	}
	if len(params) != 2*len(inputs) || len(nodes) == 0 {
		panic(errors.New("autodiff: gradient of a Sort: its comparator is not as GoMLX v0.28.8 makes them"))
	}
	order := &traced{params: params, nodes: nodes, outputs: nodes[len(nodes)-1:]} // GoMLX does not say which node it returned
	if s := order.outputs[0].Shape(); s.DType != dtypes.Bool || s.Rank() != 0 {
		panic(fmt.Errorf("autodiff: gradient of a Sort: the last node of its comparator is %s, expected the scalar of bool that it gives", s))
	}
	return graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		pairs := make([]*graph.Node, 0, len(params)+2)
		for i, x := range append(slices.Clone(inputs), nil) {
			t := dtypes.Int32
			if x != nil {
				t = x.DType()
			}
			pairs = append(pairs, graph.Parameter(g, fmt.Sprintf("l%d", i), shapes.Make(t)), graph.Parameter(g, fmt.Sprintf("r%d", i), shapes.Make(t)))
		}
		return order.at(pairs[:len(params)], nil, nil).all(order.outputs)
	})
}

func byPlace(g *graph.Graph, t dtypes.DType) *graph.Function {
	return graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		p := make([]*graph.Node, 4)
		for i, t := range []dtypes.DType{dtypes.Int32, dtypes.Int32, t, t} {
			p[i] = graph.Parameter(g, fmt.Sprintf("p%d", i), shapes.Make(t))
		}
		return []*graph.Node{graph.LessThan(p[0], p[1])}
	})
}
