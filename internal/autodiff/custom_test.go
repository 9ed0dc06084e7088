package autodiff_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla/ops"
)

// Functions with custom gradients, [2, 3, 3] to [2, 3, 3].
var customs = map[string]func(scope *model.Scope, x *graph.Node) *graph.Node{
	"attention": func(scope *model.Scope, x *graph.Node) *graph.Node {
		return nn.Attention{Heads: 1, Width: 3}.Apply(scope.At("attention"), x)
	},
	"Cholesky": func(_ *model.Scope, x *graph.Node) *graph.Node {
		spread := graph.Einsum("bij,bkj->bik", x, x)
		return ops.Cholesky(graph.Add(spread, graph.MulScalar(unitLike(x), 2)))
	},
	"SolveLower": func(_ *model.Scope, x *graph.Node) *graph.Node {
		return ops.SolveLower(graph.Add(x, graph.MulScalar(unitLike(x), 2)), x)
	},
	"gelu": func(scope *model.Scope, x *graph.Node) *graph.Node {
		return nn.Activation("gelu_approx").Apply(scope, x)
	},
	"a user's": func(_ *model.Scope, x *graph.Node) *graph.Node {
		return autodiff.Custom(graph.Tanh(x), []*graph.Node{x}, func(_ []*graph.Node, y, v *graph.Node) []*graph.Node {
			return []*graph.Node{graph.Mul(v, graph.OneMinus(graph.Square(y)))}
		})
	},
}

func unitLike(x *graph.Node) *graph.Node {
	return graph.ExpandLeftToRank(graph.ConvertDType(graph.Diagonal(x.Graph(), 3), x.DType()), 3)
}

// A function with a custom gradient has the same first and second gradient in the body of a loop or a branch as
// outside.
func TestCustom_inLoops(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 2*3*3)
	for i := range values {
		values[i] = random.NormFloat64() / 2
	}
	ways := map[string]func(f func(x *graph.Node) *graph.Node, x *graph.Node) *graph.Node{
		"Scan": func(f func(x *graph.Node) *graph.Node, x *graph.Node) *graph.Node {
			last, _ := ops.Scan([]*graph.Node{x}, nil, func(c, _ []*graph.Node) (next, out []*graph.Node) {
				return []*graph.Node{f(f(c[0]))}, nil
			}, ops.Length(1))
			return last[0]
		},
		"Scan of two": func(f func(x *graph.Node) *graph.Node, x *graph.Node) *graph.Node {
			last, _ := ops.Scan([]*graph.Node{x}, nil, func(c, _ []*graph.Node) (next, out []*graph.Node) {
				return []*graph.Node{f(c[0])}, nil
			}, ops.Length(2))
			return last[0]
		},
		"Cond": func(f func(x *graph.Node) *graph.Node, x *graph.Node) *graph.Node {
			always := graph.LessThan(graph.ReduceAllSum(graph.Mul(x, graph.ZerosLike(x))), graph.Scalar(x.Graph(), x.DType(), 1))
			return ops.Cond(always, func() []*graph.Node { return []*graph.Node{f(f(x))} }, func() []*graph.Node { return []*graph.Node{x} })[0]
		},
	}
	for name, f := range customs {
		for how, way := range ways {
			t.Run(name+" in "+how, func(t *testing.T) {
				store := model.NewStore()
				got, err := model.CallOnceN(plugintest.CPU(t), store, func(scope *model.Scope, x *graph.Node) []*graph.Node {
					here := func(x *graph.Node) *graph.Node { return f(scope, x) }
					var all []*graph.Node
					for _, y := range []*graph.Node{here(here(x)), way(here, x)} {
						weights := graph.Sin(graph.MulScalar(graph.Iota(x.Graph(), x.Shape(), 2), 1.5))
						first := ops.Gradient(graph.ReduceAllSum(graph.Mul(y, weights)), x)[0]
						all = append(all, y, first, ops.Gradient(graph.ReduceAllSum(graph.Mul(first, graph.Cos(x))), x)[0])
					}
					return all
				}, tensors.FromFlatDataAndDimensions(values, 2, 3, 3))
				require.NoError(t, err)
				for i, what := range []string{"value", "gradient", "second gradient"} {
					require.InDeltaSlice(t, tensors.MustCopyFlatData[float64](got[i]), tensors.MustCopyFlatData[float64](got[3+i]), 1e-9, what)
				}
			})
		}
	}
}

// The gradients of each example equal those for it alone.
func TestCustom_perExample(t *testing.T) {
	values := make([]float64, 2*3*3)
	for i := range values {
		values[i] = float64(i%5)/4 - 0.4
	}
	for name, f := range customs {
		t.Run(name, func(t *testing.T) {
			got, err := model.CallOnceN(plugintest.CPU(t), model.NewStore(), func(scope *model.Scope, x *graph.Node) []*graph.Node {
				scale := graph.Const(x.Graph(), []float64{1.5, 0.5, 1})
				loss := func(x *graph.Node) *graph.Node {
					return graph.ReduceAllSum(graph.Square(f(scope, graph.Mul(x, graph.ExpandLeftToRank(scale, 3)))))
				}
				_, each := ops.PerExample([]*graph.Node{x}, []*graph.Node{scale}, func(e []*graph.Node) *graph.Node { return loss(e[0]) })
				first := graph.Slice(x, graph.AxisRange(0, 1))
				return []*graph.Node{graph.Slice(each[0], graph.AxisRange(0, 1)), ops.Gradient(loss(first), scale)[0]}
			}, tensors.FromFlatDataAndDimensions(values, 2, 3, 3))
			require.NoError(t, err)
			require.InDeltaSlice(t, tensors.MustCopyFlatData[float64](got[1]), tensors.MustCopyFlatData[float64](got[0]), 1e-9)
		})
	}
}
