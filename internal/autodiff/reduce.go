package autodiff

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// extremum is the rule of ReduceMax and ReduceMin. Every element that equals the extremum gets v, as in GoMLX. GoMLX
// subtracts, and gives NaN where the extremum is an infinity.
func extremum(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	kept := x.Shape().Clone()
	axes := attributesOf(node).ints("axes")
	if len(axes) == 0 {
		axes = axesFrom(0, x.Rank())
	}
	for _, axis := range axes {
		kept.Dimensions[axis] = 1
	}
	chosen := graph.Equal(x, graph.ReshapeWithShape(node, kept))
	spread := graph.BroadcastToShape(graph.ReshapeWithShape(v, kept), x.Shape())
	return []*graph.Node{graph.Where(chosen, spread, graph.ScalarZero(v.Graph(), v.DType()))}
}

// unlessEmpty is the rule of what GoMLX differentiates well but for arrays without elements, which it cannot broadcast
// to.
func unlessEmpty(node, v *graph.Node) []*graph.Node {
	if v.Shape().IsZeroSize() || node.Inputs()[0].Shape().IsZeroSize() {
		return zeros(node.Inputs())
	}
	return stock[node.Type()](node, []*graph.Node{v}, shapes.Shape{})
}

func zeros(inputs []*graph.Node) []*graph.Node {
	gradients := make([]*graph.Node, len(inputs))
	for i, input := range inputs {
		gradients[i] = graph.Zeros(input.Graph(), input.Shape()) // not ZerosLike, which is for arrays with elements
	}
	return gradients
}
