package autodiff_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// operation is one that computes something of six numbers.
type operation struct {
	kind  graph.NodeType
	order int // the highest derivative that there is; the next one is an error
	f     func(x node) node
	at    []float64
}

var (
	anywhere = []float64{0.3, -0.7, 1.1, 0.9, -0.4, 0.6}
	above0   = []float64{0.3, 0.7, 1.1, 0.9, 0.4, 0.6}
)

func of(kind graph.NodeType, order int, f func(x node) node) operation {
	return operation{kind, order, f, anywhere}
}

func ofPositive(kind graph.NodeType, order int, f func(x node) node) operation {
	return operation{kind, order, f, above0}
}

// halves makes a function of two operands one of six numbers.
func halves(f func(a, b node) node) func(x node) node {
	return func(x node) node { return f(part(x, 0, 3), part(x, 3, 6)) }
}

func part(x node, from, to int) node { return graph.Slice(x, graph.AxisRange(from, to)) }

func number64(x node, value float64) node { return graph.Scalar(x.Graph(), dtypes.Float64, value) }

// image4 is x and 2·x as [1, 3, 4, 1].
func image4(x node) node {
	return graph.Reshape(graph.Concatenate([]node{x, graph.MulScalar(x, 2)}, 0), 1, 3, 4, 1)
}

func places(x node) node { return graph.Const(x.Graph(), [][]int32{{2}, {0}, {4}}) }

func truth(compare func(a, b node) node) func(x node) node {
	return func(x node) node { return graph.ConvertDType(compare(x, graph.Reverse(x, 0)), dtypes.Float64) }
}

func complexOf(x node) node { return graph.Complex(x, graph.Mul(x, x)) }

func normalized(x node) (y, mean, variance node) {
	x = graph.Reshape(x, 3, 2)
	return graph.InternalBatchNormForTraining(x, part(graph.Reshape(x, 6), 0, 2), part(graph.Reshape(x, 6), 2, 4), 1e-3, 1)
}

func zero32(x node) node { return graph.Const(x.Graph(), int32(0)) }

var derivatives = []operation{
	of(graph.NodeTypeAbs, 2, graph.Abs),
	of(graph.NodeTypeAdd, 2, halves(graph.Add)),
	of(graph.NodeTypeArgMinMax, 0, func(x node) node { return graph.ConvertDType(graph.ArgMax(x, 0), dtypes.Float64) }),
	of(graph.NodeTypeAtan2, 2, halves(graph.Atan2)),
	ofPositive(graph.NodeTypeBatchNormForInference, 2, func(x node) node {
		y := graph.Reshape(x, 3, 2)
		return graph.InternalBatchNormForInference(y, part(x, 1, 3), part(x, 2, 4), part(x, 4, 6), part(x, 0, 2), 1e-3, 1)
	}),
	of(graph.NodeTypeBatchNormForTraining, 1, func(x node) node { y, _, _ := normalized(x); return y }),
	of(graph.NodeTypeBroadcastInDim, 2, func(x node) node { return graph.BroadcastToDims(graph.Reshape(x, 2, 3, 1), 2, 3, 4) }),
	of(graph.NodeTypeCeil, 2, graph.Ceil),
	of(graph.NodeTypeClamp, 2, func(x node) node { return graph.Clamp(number64(x, -0.5), x, number64(x, 0.5)) }),
	of(graph.NodeTypeComplex, 1, halves(func(a, b node) node { c := graph.Complex(a, b); return graph.Mul(graph.Real(c), graph.Imag(c)) })),
	of(graph.NodeTypeConcatenate, 2, halves(func(a, b node) node { return graph.Concatenate([]node{b, graph.Mul(a, a)}, 0) })),
	of(graph.NodeTypeConj, 2, func(x node) node { return graph.Imag(graph.Conj(complexOf(x))) }),
	of(graph.NodeTypeConvGeneral, 2, func(x node) node {
		return graph.Convolve(image4(x), graph.Reshape(part(x, 1, 5), 2, 2, 1, 1)).Strides(2).PadSame().Done()
	}),
	of(graph.NodeTypeConvertDType, 2, func(x node) node {
		return graph.ConvertDType(graph.ConvertDType(x, dtypes.Complex128), dtypes.Float64)
	}),
	of(graph.NodeTypeCos, 2, graph.Cos),
	of(graph.NodeTypeDiv, 2, halves(graph.Div)),
	of(graph.NodeTypeDotGeneral, 2, func(x node) node {
		return graph.Einsum("bij,jbik->kb", graph.Reshape(x, 1, 2, 3), graph.Reshape(x, 3, 1, 2, 1))
	}),
	of(graph.NodeTypeDynamicSlice, 2, func(x node) node {
		return graph.DynamicSlice(graph.Mul(x, x), []node{graph.OnePlus(zero32(x))}, []int{3})
	}),
	of(graph.NodeTypeDynamicUpdateSlice, 2, func(x node) node {
		return graph.DynamicUpdateSlice(graph.Mul(x, x), part(x, 0, 2), []node{graph.OnePlus(zero32(x))})
	}),
	of(graph.NodeTypeErf, 2, graph.Erf),
	of(graph.NodeTypeExp, 2, graph.Exp),
	of(graph.NodeTypeExpm1, 2, graph.Expm1),
	of(graph.NodeTypeFFT, 2, func(x node) node { return graph.Real(graph.FFT(complexOf(x))) }),
	of(graph.NodeTypeFloor, 2, graph.Floor),
	of(graph.NodeTypeGather, 2, func(x node) node { return graph.Gather(graph.Mul(x, x), places(x)) }),
	of(graph.NodeTypeIdentity, 0, graph.Identity),
	of(graph.NodeTypeImag, 2, func(x node) node { return graph.Imag(complexOf(x)) }),
	ofPositive(graph.NodeTypeLog, 2, graph.Log),
	of(graph.NodeTypeLog1p, 2, graph.Log1P),
	of(graph.NodeTypeLogistic, 2, graph.Sigmoid),
	of(graph.NodeTypeMax, 2, halves(graph.Max)),
	of(graph.NodeTypeMin, 2, halves(graph.Min)),
	of(graph.NodeTypeMul, 2, halves(graph.Mul)),
	of(graph.NodeTypeNeg, 2, graph.Neg),
	of(graph.NodeTypeOptimizationBarrier, 2, graph.OptimizationBarrier),
	of(graph.NodeTypePad, 2, func(x node) node {
		return graph.Pad(graph.Mul(x, x), number64(x, 1), graph.PadAxis{Start: 2, Interior: 1, End: 1})
	}),
	ofPositive(graph.NodeTypePow, 2, halves(graph.Pow)),
	of(graph.NodeTypeReal, 2, func(x node) node { return graph.Real(complexOf(x)) }),
	of(graph.NodeTypeReduceMax, 2, func(x node) node { return graph.ReduceMax(graph.Reshape(x, 2, 3), 1) }),
	of(graph.NodeTypeReduceMin, 2, func(x node) node { return graph.ReduceMin(graph.Reshape(x, 2, 3), 1) }),
	of(graph.NodeTypeReduceProduct, 2, func(x node) node { return graph.ReduceMultiply(x) }),
	of(graph.NodeTypeReduceSum, 2, func(x node) node { return graph.ReduceSum(graph.Reshape(graph.Mul(x, x), 2, 3), 1) }),
	of(graph.NodeTypeReduceWindow, 2, func(x node) node { return graph.MaxPool(image4(x)).Window(2).Strides(1).Done() }),
	of(graph.NodeTypeRem, 2, halves(graph.Rem)),
	of(graph.NodeTypeReshape, 2, func(x node) node { return graph.Reshape(x, 2, 3) }),
	of(graph.NodeTypeReverse, 2, func(x node) node { return graph.Reverse(x, 0) }),
	of(graph.NodeTypeRound, 2, graph.Round),
	ofPositive(graph.NodeTypeRsqrt, 2, graph.Rsqrt),
	of(graph.NodeTypeScatterMax, 2, func(x node) node {
		return graph.ScatterMax(part(graph.Reverse(x, 0), 0, 5), places(x), part(x, 0, 3), false, true)
	}),
	of(graph.NodeTypeScatterMin, 2, func(x node) node {
		return graph.ScatterMin(part(graph.Reverse(x, 0), 0, 5), places(x), part(x, 0, 3), false, true)
	}),
	of(graph.NodeTypeScatterSum, 2, func(x node) node {
		return graph.ScatterSum(part(x, 0, 5), places(x), graph.Mul(part(x, 0, 3), part(x, 3, 6)), false, true)
	}),
	of(graph.NodeTypeSchedulingBarrier, 2, func(x node) node { return graph.SchedulingBarrier(x, graph.Mul(x, x)) }),
	of(graph.NodeTypeSign, 2, graph.Sign),
	of(graph.NodeTypeSin, 2, graph.Sin),
	of(graph.NodeTypeSlice, 2, func(x node) node { return graph.Slice(graph.Mul(x, x), graph.AxisRange(1, 6).Stride(2)) }),
	of(graph.NodeTypeSort, 2, func(x node) node { return graph.Sort(x, 0, true) }),
	ofPositive(graph.NodeTypeSqrt, 2, graph.Sqrt),
	of(graph.NodeTypeSub, 2, halves(graph.Sub)),
	of(graph.NodeTypeTanh, 2, graph.Tanh),
	of(graph.NodeTypeTranspose, 2, func(x node) node { return graph.Transpose(graph.Reshape(x, 2, 3), 0, 1) }),
	of(graph.NodeTypeWhere, 2, func(x node) node {
		return graph.Where(graph.GreaterThan(x, number64(x, 0)), graph.Mul(x, x), graph.Neg(x))
	}),
	of(graph.NodeTypeEqual, 2, truth(graph.Equal)),
	of(graph.NodeTypeEqualTotalOrder, 2, truth(graph.EqualTotalOrder)),
	of(graph.NodeTypeGreaterOrEqual, 2, truth(graph.GreaterOrEqual)),
	of(graph.NodeTypeGreaterOrEqualTotalOrder, 2, truth(graph.GreaterOrEqualTotalOrder)),
	of(graph.NodeTypeGreaterThan, 2, truth(graph.GreaterThan)),
	of(graph.NodeTypeGreaterThanTotalOrder, 2, truth(graph.GreaterThanTotalOrder)),
	of(graph.NodeTypeLessOrEqual, 2, truth(graph.LessOrEqual)),
	of(graph.NodeTypeLessOrEqualTotalOrder, 2, truth(graph.LessOrEqualTotalOrder)),
	of(graph.NodeTypeLessThan, 2, truth(graph.LessThan)),
	of(graph.NodeTypeLessThanTotalOrder, 2, truth(graph.LessThanTotalOrder)),
	of(graph.NodeTypeNotEqual, 2, truth(graph.NotEqual)),
	of(graph.NodeTypeNotEqualTotalOrder, 2, truth(graph.NotEqualTotalOrder)),
	// The same operations with other attributes.
	of(graph.NodeTypeReduceWindow, 2, func(x node) node {
		return graph.MeanPool(graph.Mul(image4(x), image4(x))).Window(2).Strides(1).PadSame().Done()
	}),
	of(graph.NodeTypeReduceWindow, 2, func(x node) node {
		y := image4(x)
		return graph.Mul(graph.MaxPool(graph.Mul(y, y)).WindowPerAxis(3, 2).Strides(2).PadSame().Done(), number64(x, 3))
	}),
	of(graph.NodeTypeReduceWindow, 2, func(x node) node { // more places than are taken apart
		y := graph.Concatenate(slices.Repeat([]node{x}, 12), 0)
		return graph.CumSum(graph.Mul(y, y), 0)
	}),
	of(graph.NodeTypeReduceWindow, 1, func(x node) node { // the gradient is GoMLX's
		y := graph.Concatenate(slices.Repeat([]node{x}, 12), 0)
		return graph.MaxPool(graph.Mul(y, y)).FullShape().Window(70).Strides(1).Done()
	}),
	of(graph.NodeTypeReduceWindow, 2, func(x node) node {
		return graph.CumSum(graph.Mul(x, x), 0, &graph.CumSumOptions{Exclusive: true, Reverse: true})
	}),
	of(graph.NodeTypeConvGeneral, 2, func(x node) node {
		kernel := graph.Concatenate([]node{part(x, 1, 5), graph.Mul(part(x, 0, 4), part(x, 2, 6))}, 0)
		y := graph.Reshape(graph.Concatenate([]node{x, x, x, x}, 0), 1, 3, 4, 2)
		return graph.Convolve(y, graph.Reshape(kernel, 2, 2, 1, 2)).DilationPerAxis(1, 2).ChannelGroupCount(2).NoPadding().Done()
	}),
	of(graph.NodeTypeGather, 2, func(x node) node {
		y := graph.Reshape(graph.Mul(x, x), 3, 2)
		return graph.Gather(y, graph.Const(x.Graph(), [][][]int32{{{2}, {2}}, {{0}, {2}}}))
	}),
	of(graph.NodeTypeScatterSum, 2, func(x node) node { // twice to one place
		return graph.ScatterSum(graph.Reshape(graph.Mul(x, x), 3, 2), graph.Const(x.Graph(), [][]int32{{1}, {1}}),
			graph.Reshape(graph.Mul(part(x, 0, 4), part(x, 2, 6)), 2, 2), false, false)
	}),
	of(graph.NodeTypePad, 2, func(x node) node {
		return graph.Pad(graph.Mul(x, x), graph.Reshape(part(x, 0, 1)), graph.PadAxis{Start: -1, Interior: 2, End: -2})
	}),
	of(graph.NodeTypeSort, 2, func(x node) node {
		values, _ := graph.TopK(graph.Mul(graph.Reshape(x, 2, 3), graph.Reshape(x, 2, 3)), 2, 1)
		return values
	}),
	of(graph.NodeTypeIsFinite, 0, truth(func(a, _ node) node { return graph.IsFinite(a) })),
	of(graph.NodeTypeIsNaN, 0, truth(func(a, _ node) node { return graph.IsNaN(a) })),
}

// noDerivatives are the node types without a row: of integers and bools, without floating-point inputs, created by
// other gradients, of unknown shapes or several devices, or not supported by lazo's backend.
var noDerivatives = []string{
	"Invalid", "SplitNode", "Constant", "Parameter", "Iota", "RNGBitGenerator", "AllReduce",
	"BatchNormGradient", "SelectAndScatterMax", "SelectAndScatterMin",
	"BitCount", "Bitcast", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Clz", "ShiftLeft", "ShiftRightArithmetic", "ShiftRightLogical",
	"LogicalAnd", "LogicalNot", "LogicalOr", "LogicalXor", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceLogicalXor",
	"ReduceBitwiseAnd", "ReduceBitwiseOr", "ReduceBitwiseXor",
	"CumSum", "DynamicBroadcastInDim", "DynamicDimensionSize", "DynamicIota", "DynamicPad", "DynamicReshape", "DynamicShape",
	"FusedAttentionQKVProjection", "FusedDense", "FusedGelu", "FusedLayerNorm", "FusedQuantizedDense", "FusedScaledDotProductAttention",
	"FusedScaledDotProductAttentionVJP", "FusedSoftmax", "QuantizedEmbeddingLookup",
}

// TestDerivatives compares first and second derivatives of all operations, with GoMLX's rules and lazo's, to finite
// differences, and pins which ones exist.
func TestDerivatives(t *testing.T) {
	covered := slices.Clone(noDerivatives)
	for _, o := range derivatives {
		covered = append(covered, o.kind.String())
		t.Run(o.kind.String(), func(t *testing.T) {
			g := graph.NewGraph(plugintest.CPU(t), "derivatives")
			defer g.Finalize()
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 6))
			weigh := func(y node) node {
				weights := make([]float64, y.Shape().Size())
				for i := range weights {
					weights[i] = 1 + math.Mod(0.37*float64(i), 1)
				}
				return graph.ReduceAllSum(graph.Mul(graph.Reshape(y, -1), graph.Const(g, weights)))
			}
			outputs := []node{o.f(x)}
			require.True(t, slices.ContainsFunc(g.Nodes(), func(n node) bool { return n.Type() == o.kind }))
			for i := range 2 {
				var next node
				err := graphs.Catch(func() { next = autodiff.Gradient(weigh(outputs[i]), x)[0] })
				if i == o.order {
					require.Error(t, err, "derivative %d", i+1)
					break
				}
				require.NoError(t, err, "derivative %d", i+1)
				outputs = append(outputs, next)
			}
			for i := range outputs {
				if i < o.order {
					outputs = append(outputs, weigh(outputs[i]))
				}
			}
			g.Compile(outputs...)
			run := func(at []float64) []*tensors.Tensor { return g.Run(at) }
			exact := run(o.at)
			const h = 1e-5
			for i := range o.at {
				moved := func(by float64) []*tensors.Tensor {
					at := slices.Clone(o.at)
					at[i] += by
					return run(at)
				}
				less, more := moved(-h), moved(h)
				for k := range o.order {
					sum := 1 + o.order + k
					slope := (tensors.ToScalar[float64](more[sum]) - tensors.ToScalar[float64](less[sum])) / (2 * h)
					require.InDelta(t, slope, tensors.MustCopyFlatData[float64](exact[1+k])[i], 1e-7*max(1, math.Abs(slope)), "derivative %d by x[%d]", k+1, i)
				}
			}
		})
	}
	for _, kind := range graph.NodeTypeValues() {
		require.Contains(t, covered, kind.String(), "a new node type of GoMLX: give it a row")
	}
}
