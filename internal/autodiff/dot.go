package autodiff

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// operand is one side of a DotGeneral.
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

// dot contracts the last axis of its left operand with the first of its right one.
func dot(node, v *graph.Node) []*graph.Node {
	lhs, rhs := node.Inputs()[0], node.Inputs()[1]
	return dotGradients(node, v, newOperand(lhs, nil, []int{lhs.Rank() - 1}), newOperand(rhs, nil, []int{0}))
}

func dotGeneral(node, v *graph.Node) []*graph.Node {
	a := attributesOf(node)
	lhs, rhs := node.Inputs()[0], node.Inputs()[1]
	return dotGradients(node, v,
		newOperand(lhs, a.ints("lhsBatchAxes"), a.ints("lhsContractingAxes")),
		newOperand(rhs, a.ints("rhsBatchAxes"), a.ints("rhsContractingAxes")))
}

func dotGradients(node, v *graph.Node, lhs, rhs operand) []*graph.Node {
	gradients := make([]*graph.Node, 2)
	// The axes of v are the batch axes, then the free ones of lhs, then those of rhs.
	batch := axesFrom(0, len(lhs.batch))
	fromLhs := axesFrom(len(batch), len(lhs.free))
	fromRhs := axesFrom(len(batch)+len(fromLhs), len(rhs.free))
	if wants(node, 0) {
		gradients[0] = dotGradient(operand{v, batch, fromRhs, fromLhs}, rhs, lhs)
	}
	if wants(node, 1) {
		gradients[1] = dotGradient(operand{v, batch, fromLhs, fromRhs}, lhs, rhs)
	}
	return gradients
}

// dotGradient is the gradient with respect to the operand wrt, of which other is the partner: v and other contracted
// over the axes that other alone brought into the output. Complex values are not conjugated, in GoMLX as in JAX.
func dotGradient(v, other, wrt operand) *graph.Node {
	// The product's axes, as the axes of wrt that they are: a DotGeneral gives the batch axes in the order asked for, and
	// the remaining ones of each side in their own order.
	contracted := slices.Clone(wrt.contracting)
	slices.SortFunc(contracted, func(a, b int) int {
		return other.contracting[slices.Index(wrt.contracting, a)] - other.contracting[slices.Index(wrt.contracting, b)]
	})
	order := slices.Concat(wrt.batch, wrt.free, contracted)
	if swapped := slices.Concat(wrt.batch, contracted, wrt.free); slices.IsSorted(swapped) {
		// With the sides changed the axes come out in their places, and no transpose is needed.
		return graph.DotGeneral(other.node, other.free, other.batch, v.node, v.contracting, v.batch)
	}
	product := graph.DotGeneral(v.node, v.contracting, v.batch, other.node, other.free, other.batch)
	if slices.IsSorted(order) {
		return product
	}
	permutation := make([]int, len(order))
	for from, to := range order {
		permutation[to] = from
	}
	return graph.TransposeAllAxes(product, permutation...)
}

func axesFrom(first, n int) []int {
	axes := make([]int, n)
	for i := range axes {
		axes[i] = first + i
	}
	return axes
}
