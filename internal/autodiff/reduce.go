package autodiff

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Every element equal to the extremum gets v, as in GoMLX.
func extremum(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	_, kept := reducedAxes(node)
	chosen := graph.Equal(x, graph.ReshapeWithShape(node, kept))
	spread := graph.BroadcastToShape(graph.ReshapeWithShape(v, kept), x.Shape())
	return []*graph.Node{graph.Where(chosen, spread, graph.ScalarZero(v.Graph(), v.DType()))}
}

// kept has length 1 along these axes.
func reducedAxes(node *graph.Node) (axes []int, kept shapes.Shape) {
	x := node.Inputs()[0]
	if axes = attributesOf(node).ints("axes"); len(axes) == 0 {
		axes = axesFrom(0, x.Rank())
	}
	kept = x.Shape().Clone()
	for _, axis := range axes {
		kept.Dimensions[axis] = 1
	}
	return axes, kept
}

// v times the elements before and after each one, axis by axis: division fails at 0.
func productOfAll(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	axes, kept := reducedAxes(node)
	others := graph.Ones(x.Graph(), x.Shape())
	left := x // length 1 along the axes that are done
	for _, axis := range axes {
		all := graph.ReduceMultiply(left, axis)
		others = graph.Mul(others, graph.BroadcastToShape(othersAlong(left, axis), x.Shape()))
		shape := left.Shape().Clone()
		shape.Dimensions[axis] = 1
		left = graph.ReshapeWithShape(all, shape)
	}
	return []*graph.Node{graph.Mul(graph.BroadcastToShape(graph.ReshapeWithShape(v, kept), x.Shape()), others)}
}

func othersAlong(x *graph.Node, axis int) *graph.Node {
	n := x.Shape().Dimensions[axis]
	shift := func(x *graph.Node, by int) *graph.Node { // fills with ones; by > 0 shifts towards the end
		fill, rest := x.Shape().Clone(), make([]graph.SliceAxisSpec, x.Rank())
		for i := range rest {
			rest[i] = graph.AxisRange()
		}
		if by > 0 {
			fill.Dimensions[axis], rest[axis] = by, graph.AxisRange(0, n-by)
			return graph.Concatenate([]*graph.Node{graph.Ones(x.Graph(), fill), graph.Slice(x, rest...)}, axis)
		}
		fill.Dimensions[axis], rest[axis] = -by, graph.AxisRange(-by, n)
		return graph.Concatenate([]*graph.Node{graph.Slice(x, rest...), graph.Ones(x.Graph(), fill)}, axis)
	}
	if n == 1 {
		return graph.OnesLike(x)
	}
	before, behind := shift(x, 1), shift(x, -1)
	for by := 1; by < n; by *= 2 {
		before, behind = graph.Mul(before, shift(before, by)), graph.Mul(behind, shift(behind, -by))
	}
	return graph.Mul(before, behind)
}

// GoMLX's rules cannot broadcast to arrays without elements.
func unlessEmpty(node, v *graph.Node) []*graph.Node {
	if v.Shape().IsZeroSize() || node.Inputs()[0].Shape().IsZeroSize() {
		return zeros(node.Inputs())
	}
	return stock[node.Type()](node, []*graph.Node{v}, shapes.Shape{})
}

func zeros(inputs []*graph.Node) []*graph.Node {
	gradients := make([]*graph.Node, len(inputs))
	for i, input := range inputs {
		gradients[i] = graph.Zeros(input.Graph(), input.Shape()) // ZerosLike needs elements
	}
	return gradients
}
