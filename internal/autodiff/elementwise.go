package autodiff

import (
	"reflect"

	"github.com/gomlx/gomlx/core/graph"
)

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

// At a tie the first operand gets v, as in GoMLX.
func larger(node, v *graph.Node) []*graph.Node {
	return choose(node, v, graph.GreaterOrEqual(node.Inputs()[0], node.Inputs()[1]))
}

// At a tie the second operand gets v, as in GoMLX.
func smaller(node, v *graph.Node) []*graph.Node {
	return choose(node, v, graph.LessThan(node.Inputs()[0], node.Inputs()[1]))
}

func choose(node, v, first *graph.Node) []*graph.Node {
	zero := graph.ScalarZero(v.Graph(), v.DType())
	return []*graph.Node{
		unbroadcast(graph.Where(first, v, zero), node.Inputs()[0]),
		unbroadcast(graph.Where(first, zero, v), node.Inputs()[1]),
	}
}

// clamp passes v to x within the bounds, to a bound if x is beyond it. At a bound all are 0, as in JAX.
func clamp(node, v *graph.Node) []*graph.Node {
	low, x, high := node.Inputs()[0], node.Inputs()[1], node.Inputs()[2]
	zero := graph.ScalarZero(v.Graph(), v.DType())
	within := graph.LogicalAnd(graph.GreaterThan(x, low), graph.LessThan(x, high))
	return []*graph.Node{
		unbroadcast(graph.Where(graph.LessThan(x, low), v, zero), low),
		graph.Where(within, v, zero),
		unbroadcast(graph.Where(graph.GreaterThan(x, high), v, zero), high),
	}
}

func rsqrt(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Mul(v, graph.MulScalar(graph.Div(node, node.Inputs()[0]), -0.5))}
}

func expm1(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Mul(v, graph.Exp(node.Inputs()[0]))}
}

// rem: a - b·trunc(a/b), with a constant quotient.
func rem(node, v *graph.Node) []*graph.Node {
	a, b := node.Inputs()[0], node.Inputs()[1]
	ratio := graph.Div(a, b)
	whole := graph.Mul(graph.Sign(ratio), graph.Floor(graph.Abs(ratio)))
	return []*graph.Node{unbroadcast(v, a), unbroadcast(graph.Neg(graph.Mul(v, whole)), b)}
}

func atan2(node, v *graph.Node) []*graph.Node {
	y, x := node.Inputs()[0], node.Inputs()[1]
	share := graph.Div(v, graph.Add(graph.Square(x), graph.Square(y)))
	return []*graph.Node{unbroadcast(graph.Mul(share, x), y), unbroadcast(graph.Neg(graph.Mul(share, y)), x)}
}

// Piecewise constant functions have slope 0, as in JAX.
func level(node, _ *graph.Node) []*graph.Node { return make([]*graph.Node, len(node.Inputs())) }

// div divides by b after the sum over axes along which b is broadcast.
func div(node, v *graph.Node) []*graph.Node {
	a, b := node.Inputs()[0], node.Inputs()[1]
	return []*graph.Node{
		unbroadcast(graph.Div(v, b), a),
		graph.Neg(graph.Div(unbroadcast(graph.Mul(v, node), b), b)),
	}
}

// pow: d(aᵇ) = b·aᵇ⁻¹·da + ln(a)·aᵇ·db. At a = 0 the second term is 0, its limit for b > 0. For a constant b it is also
// 0 for a < 0; else eager NaN checks would report x³.
func pow(node, v *graph.Node) []*graph.Node {
	a, b := node.Inputs()[0], node.Inputs()[1]
	one, zero := graph.ScalarOne(node.Graph(), node.DType()), graph.ScalarZero(node.Graph(), node.DType())
	flat := graph.Equal(a, zero)
	if constant(b) {
		flat = graph.LessOrEqual(a, zero)
	}
	return []*graph.Node{
		unbroadcast(graph.Mul(v, graph.Mul(b, graph.Pow(a, graph.Sub(b, one)))), a),
		unbroadcast(graph.Mul(v, graph.Mul(graph.Log(graph.Where(flat, one, a)), node)), b),
	}
}

func log(node, v *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Div(v, node.Inputs()[0])}
}

// y = scale·(x-mean)·(variance+ε)^-½ + offset; all but x are per feature.
func normForInference(node, v *graph.Node) []*graph.Node {
	a, in := attributesOf(node), node.Inputs()
	x, axis := in[0], a.int("featureAxis")
	epsilon := a.field("epsilon", reflect.Float32).Float()
	wide := make([]int, x.Rank())
	for i := range wide {
		wide[i] = 1
	}
	wide[axis] = x.Shape().Dimensions[axis]
	of := func(feature *graph.Node) *graph.Node { return graph.Reshape(feature, wide...) }
	sum := func(n *graph.Node) *graph.Node {
		return graph.ReshapeWithShape(unbroadcast(n, of(in[1])), in[1].Shape())
	}
	inverse := graph.Rsqrt(graph.AddScalar(in[4], epsilon))
	centered := graph.Sub(x, of(in[3]))
	slope := graph.Mul(in[1], inverse)
	offset, scale := sum(v), graph.Mul(sum(graph.Mul(v, centered)), inverse)
	return []*graph.Node{
		graph.Mul(v, of(slope)), scale, offset, graph.Neg(graph.Mul(offset, slope)),
		graph.MulScalar(graph.Mul(graph.Mul(scale, in[1]), graph.Square(inverse)), -0.5),
	}
}
