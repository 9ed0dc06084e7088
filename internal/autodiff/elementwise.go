package autodiff

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// each makes the gradients of a node of two inputs that broadcast to its shape, from how v reaches each of them before
// the broadcast is undone.
func each(node *graph.Node, reach ...func() *graph.Node) []*graph.Node {
	gradients := make([]*graph.Node, len(reach))
	for i, f := range reach {
		if f != nil && wants(node, i) {
			gradients[i] = unbroadcast(f(), node.Inputs()[i])
		}
	}
	return gradients
}

// unbroadcast sums v over the axes along which input was broadcast to v's shape.
func unbroadcast(v, input *graph.Node) *graph.Node {
	if v.Shape().Equal(input.Shape()) {
		return v
	}
	if input.IsScalar() {
		return graph.ReduceAllSum(v)
	}
	var axes []int
	for axis, size := range input.Shape().Dimensions {
		if size == 1 && v.Shape().Dimensions[axis] != 1 {
			axes = append(axes, axis)
		}
	}
	return graph.ReshapeWithShape(graph.ReduceSum(v, axes...), input.Shape())
}

func add(node, v *graph.Node) []*graph.Node {
	same := func() *graph.Node { return v }
	return each(node, same, same)
}

func sub(node, v *graph.Node) []*graph.Node {
	gradients := add(node, v)
	if gradients[1] != nil {
		gradients[1] = graph.Neg(gradients[1]) // after the sum: the smaller of the two
	}
	return gradients
}

func mul(node, v *graph.Node) []*graph.Node {
	a, b := node.Inputs()[0], node.Inputs()[1]
	if a == b {
		return []*graph.Node{graph.Mul(v, graph.MulScalar(a, 2)), nil}
	}
	return each(node,
		func() *graph.Node { return graph.Mul(v, b) },
		func() *graph.Node { return graph.Mul(v, a) })
}

// div: d(a/b) = da/b - (a/b)·db/b. The quotient is the node itself, and b does not vary over the axes that it is
// broadcast along, so the division by it can follow the sum.
func div(node, v *graph.Node) []*graph.Node {
	b := node.Inputs()[1]
	gradients := each(node,
		func() *graph.Node { return graph.Div(v, b) },
		func() *graph.Node { return graph.Mul(v, node) })
	if gradients[1] != nil {
		gradients[1] = graph.Neg(graph.Div(gradients[1], b))
	}
	return gradients
}

// pow: d(aᵇ) = b·aᵇ⁻¹·da + ln(a)·aᵇ·db. At a = 0 the second term is 0, its limit for a positive b, as in JAX; GoMLX gives
// NaN there.
func pow(node, v *graph.Node) []*graph.Node {
	a, b := node.Inputs()[0], node.Inputs()[1]
	one, zero := graph.ScalarOne(node.Graph(), node.DType()), graph.ScalarZero(node.Graph(), node.DType())
	return each(node,
		func() *graph.Node { return graph.Mul(v, graph.Mul(b, graph.Pow(a, graph.Sub(b, one)))) },
		func() *graph.Node {
			return graph.Mul(v, graph.Mul(graph.Log(graph.Where(graph.Equal(a, zero), one, a)), node))
		})
}

func sqrt(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Div(graph.MulScalar(v, 0.5), node)}
}

func log(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Div(v, node.Inputs()[0])}
}

func log1p(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Div(v, graph.OnePlus(node.Inputs()[0]))}
}

// abs has slope 1 at 0, as in GoMLX and JAX.
func abs(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	if x.DType().IsComplex() {
		return stock[graph.NodeTypeAbs](node, []*graph.Node{v}, v.Shape())
	}
	return []*graph.Node{graph.Where(graph.LessThan(x, graph.ScalarZero(x.Graph(), x.DType())), graph.Neg(v), v)}
}

func where(node, v *graph.Node) []*graph.Node {
	condition := node.Inputs()[0]
	zero := graph.ScalarZero(v.Graph(), v.DType())
	return each(node, nil,
		func() *graph.Node { return graph.Where(condition, v, zero) },
		func() *graph.Node { return graph.Where(condition, zero, v) })
}

// larger is the rule of Max. At a tie the first operand gets all of v, as in GoMLX (in JAX each gets half).
func larger(node, v *graph.Node) []*graph.Node {
	return choose(node, v, graph.GreaterOrEqual(node.Inputs()[0], node.Inputs()[1]))
}

// smaller is the rule of Min. At a tie the second operand gets all of v, as in GoMLX.
func smaller(node, v *graph.Node) []*graph.Node {
	return choose(node, v, graph.LessThan(node.Inputs()[0], node.Inputs()[1]))
}

func choose(node, v, first *graph.Node) []*graph.Node {
	zero := graph.ScalarZero(v.Graph(), v.DType())
	return each(node,
		func() *graph.Node { return graph.Where(first, v, zero) },
		func() *graph.Node { return graph.Where(first, zero, v) })
}
