package autodiff

import (
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

type operand struct {
	node                     *graph.Node
	batch, contracting, free []int
}

func newOperand(node *graph.Node, batch, contracting []int) operand {
	o := operand{node: node, batch: batch, contracting: contracting}
	for axis := range node.Rank() {
		if !slices.Contains(batch, axis) && !slices.Contains(contracting, axis) {
			o.free = append(o.free, axis)
		}
	}
	return o
}

func operandsOf(node *graph.Node) (lhs, rhs operand, sums dtypes.DType) {
	a := attributesOf(node)
	lhs = newOperand(node.Inputs()[0], a.ints("lhsBatchAxes"), a.ints("lhsContractingAxes"))
	rhs = newOperand(node.Inputs()[1], a.ints("rhsBatchAxes"), a.ints("rhsContractingAxes"))
	return lhs, rhs, dtypes.DType(a.sub("config").field("AccumulatorDType", reflect.Int32).Int())
}

// Batch, then free axes of lhs, then of rhs, numbered from first.
func resultAxes(first int, lhs, rhs operand) (batch, fromLhs, fromRhs []int) {
	batch = axesFrom(first, len(lhs.batch))
	fromLhs = axesFrom(first+len(batch), len(lhs.free))
	return batch, fromLhs, axesFrom(first+len(batch)+len(fromLhs), len(rhs.free))
}

func dotGeneral(node, v *graph.Node) []*graph.Node {
	lhs, rhs, sums := operandsOf(node)
	batch, fromLhs, fromRhs := resultAxes(0, lhs, rhs)
	return []*graph.Node{
		dotGradient(operand{v, batch, fromRhs, fromLhs}, rhs, lhs, sums),
		dotGradient(operand{v, batch, fromLhs, fromRhs}, lhs, rhs, sums),
	}
}

// The gradient by wrt is v and other contracted over other's free axes. Complex values are not conjugated.
func dotGradient(v, other, wrt operand, sums dtypes.DType) *graph.Node {
	// wrt's axes in the order of the product's result: batch axes as requested, others in each side's order.
	contracted := slices.Clone(wrt.contracting)
	slices.SortFunc(contracted, func(a, b int) int {
		return other.contracting[slices.Index(wrt.contracting, a)] - other.contracting[slices.Index(wrt.contracting, b)]
	})
	order := slices.Concat(wrt.batch, wrt.free, contracted)
	left, right := v, operand{other.node, other.batch, other.free, other.contracting}
	if swapped := slices.Concat(wrt.batch, contracted, wrt.free); slices.IsSorted(swapped) {
		// Swapped sides need no transpose.
		left, right, order = right, left, swapped
	}
	t := v.node.DType() // not always the operands' dtype
	if wider := other.node.DType(); wider.Bits() > t.Bits() {
		t = wider
	}
	product := graph.Dot(graph.ConvertDType(left.node, t), graph.ConvertDType(right.node, t)).WithAccumulatorDType(sums).
		General(left.contracting, left.batch, right.contracting, right.batch)
	gradient := graph.ConvertDType(product, wrt.node.DType())
	if slices.IsSorted(order) {
		return gradient
	}
	permutation := make([]int, len(order))
	for from, to := range order {
		permutation[to] = from
	}
	return graph.TransposeAllAxes(gradient, permutation...)
}

func axesFrom(first, n int) []int {
	axes := make([]int, n)
	for i := range axes {
		axes[i] = first + i
	}
	return axes
}
