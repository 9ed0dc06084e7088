package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/autodiff"
)

// Cholesky returns the lower triangular L with L·Lᵀ = a, for symmetric positive definite matrices [batch…, n, n]. An
// asymmetric a is replaced by the mean of a and aᵀ. The factor of a matrix that is not positive definite is NaN.
func Cholesky(a *graph.Node) *graph.Node {
	n := square("Cholesky", a)
	a = graph.MulScalar(graph.Add(a, transposed(a)), 0.5)
	return autodiff.Custom(factor(graph.StopGradient(a), n), []*graph.Node{a}, func(_ []*graph.Node, l, v *graph.Node) []*graph.Node {
		// Murray 2016, Differentiation of the Cholesky decomposition.
		p := graph.Mul(product(transposed(l), lower(v, n)), halved(l, n))
		p = SolveUpper(transposed(l), p)
		return []*graph.Node{transposed(SolveUpper(transposed(l), transposed(p)))}
	})
}

// SolveLower returns x with l·x = b, for lower triangular l [batch…, n, n] and b [batch…, n, k]. Elements above l's
// diagonal are ignored.
func SolveLower(l, b *graph.Node) *graph.Node { return solve("SolveLower", l, b, false) }

// SolveUpper returns x with u·x = b, for upper triangular u [batch…, n, n] and b [batch…, n, k]. Elements below u's
// diagonal are ignored.
func SolveUpper(u, b *graph.Node) *graph.Node { return solve("SolveUpper", u, b, true) }

func solve(what string, a, b *graph.Node, upper bool) *graph.Node {
	n := square(what, a)
	rank := a.Rank()
	if b == nil || b.DType() != a.DType() || b.Rank() != rank || !slices.Equal(b.Shape().Dimensions[:rank-1], a.Shape().Dimensions[:rank-1]) {
		panic(fmt.Errorf("ops: %s: the right side is %s, expected [batch…, %d, k] for matrices %s", what, autodiff.ShapeText(b), n, a.Shape()))
	}
	if upper {
		a = transposed(a)
	}
	half := graph.Where(graph.BroadcastToDims(triangle(a, n), a.Shape().Dimensions...), a, graph.ZerosLike(a))
	if upper {
		half = transposed(half)
	}
	return autodiff.Custom(substituted(graph.StopGradient(half), graph.StopGradient(b), upper), []*graph.Node{b, half}, func(inputs []*graph.Node, x, v *graph.Node) []*graph.Node {
		byB := solve(what, transposed(inputs[1]), v, !upper)
		return []*graph.Node{byB, graph.Neg(product(byB, transposed(x)))}
	})
}

func factor(a *graph.Node, n int) *graph.Node {
	g, dims := a.Graph(), a.Shape().Dimensions
	a = graph.Reshape(a, -1, n, n)
	batch := a.Shape().Dimensions[0]
	one := unit(a, n)
	last, _ := Scan([]*graph.Node{graph.ZerosLike(a)}, []*graph.Node{graph.TransposeAllAxes(a, 1, 0, 2), one, graph.TransposeAllAxes(lower(graph.OnesLike(one), n), 1, 0)},
		func(carry, x []*graph.Node) (next, out []*graph.Node) {
			l, here := carry[0], x[1]
			row := graph.Einsum("bij,i->bj", l, here)
			rest := graph.Sub(x[0], graph.Einsum("bij,bj->bi", l, row))
			pivot := graph.Einsum("bi,i->b", rest, here)
			fits := graph.GreaterThan(pivot, graph.ZerosLike(pivot))
			pivot = graph.Where(fits, graph.Sqrt(pivot), graph.BroadcastToDims(graph.Scalar(g, a.DType(), math.NaN()), batch))
			column := graph.Div(graph.Mul(rest, graph.ExpandLeftToRank(x[2], 2)), graph.ExpandAxes(pivot, -1))
			return []*graph.Node{graph.Add(l, graph.Einsum("bi,j->bij", column, here))}, nil
		})
	// A NaN pivot makes all later ones NaN; if the last one is NaN, so is the whole factor.
	whole := graph.Slice(last[0], graph.AxisRange(), graph.AxisRange(n-1), graph.AxisRange(n-1))
	failed := graph.Mul(whole, graph.ScalarZero(g, a.DType()))
	return graph.Reshape(lower(graph.Add(last[0], failed), n), dims...)
}

func substituted(a, b *graph.Node, upper bool) *graph.Node {
	n, dims := a.Shape().Dimensions[a.Rank()-1], b.Shape().Dimensions
	a, b = graph.Reshape(a, -1, n, n), graph.Reshape(b, -1, n, dims[len(dims)-1])
	var options []Option
	if upper {
		options = append(options, Reverse())
	}
	last, _ := Scan([]*graph.Node{graph.ZerosLike(b)}, []*graph.Node{graph.TransposeAllAxes(a, 1, 0, 2), graph.TransposeAllAxes(b, 1, 0, 2), unit(a, n)},
		func(carry, at []*graph.Node) (next, out []*graph.Node) {
			x, row, here := carry[0], at[0], at[2]
			rest := graph.Sub(at[1], graph.Einsum("bj,bjk->bk", row, x))
			value := graph.Div(rest, graph.ExpandAxes(graph.Einsum("bj,j->b", row, here), -1))
			// A select: in a sum, an infinite value times 0 would make other rows NaN.
			at = []*graph.Node{graph.ExpandAxes(graph.GreaterThan(here, graph.ZerosLike(here)), 0, -1), graph.ExpandAxes(value, 1)}
			for i, n := range at {
				at[i] = graph.BroadcastToDims(n, x.Shape().Dimensions...)
			}
			return []*graph.Node{graph.Where(at[0], at[1], x)}, nil
		}, options...)
	return graph.Reshape(last[0], dims...)
}

func square(what string, a *graph.Node) int {
	if a == nil || !a.DType().IsFloat() || a.Rank() < 2 || a.Shape().Dimensions[a.Rank()-1] != a.Shape().Dimensions[a.Rank()-2] || a.Shape().IsZeroSize() {
		panic(fmt.Errorf("ops: %s: the matrices are %s, expected floating-point numbers [batch…, n, n], one at least", what, autodiff.ShapeText(a)))
	}
	return a.Shape().Dimensions[a.Rank()-1]
}

func transposed(a *graph.Node) *graph.Node { return graph.Transpose(a, -2, -1) }

func product(a, b *graph.Node) *graph.Node { return graph.Dot(a, b).MatMul() }

func unit(like *graph.Node, n int) *graph.Node {
	return graph.ConvertDType(graph.Diagonal(like.Graph(), n), like.DType())
}

// triangle is true on and below the diagonal, [1…, n, n].
func triangle(like *graph.Node, n int) *graph.Node {
	g, shape := like.Graph(), shapes.Make(dtypes.Int32, n, n)
	return graph.ExpandLeftToRank(graph.GreaterOrEqual(graph.Iota(g, shape, 0), graph.Iota(g, shape, 1)), like.Rank())
}

func lower(a *graph.Node, n int) *graph.Node {
	return graph.Where(graph.BroadcastToDims(triangle(a, n), a.Shape().Dimensions...), a, graph.ZerosLike(a))
}

// halved is 1 below the diagonal and ½ on it.
func halved(like *graph.Node, n int) *graph.Node {
	return graph.ExpandLeftToRank(graph.Sub(lower(graph.OnesLike(unit(like, n)), n), graph.MulScalar(unit(like, n), 0.5)), like.Rank())
}
