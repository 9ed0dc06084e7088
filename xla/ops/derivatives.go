package ops

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/autodiff"
)

// Gradient returns the gradients of loss, a floating-point scalar, with respect to each of wrt, in their shapes, 0
// without a dependence.
func Gradient(loss *graph.Node, wrt ...*graph.Node) []*graph.Node {
	return gradient("Gradient", loss, wrt)
}

func gradient(what string, loss *graph.Node, wrt []*graph.Node) []*graph.Node {
	if loss == nil || loss.Rank() != 0 || !loss.DType().IsFloat() {
		panic(fmt.Errorf("ops: %s: the loss is %s, expected a scalar of a floating-point type", what, autodiff.ShapeText(loss)))
	}
	for i, n := range wrt {
		switch {
		case n == nil || !n.DType().IsFloat() && !n.DType().IsComplex():
			panic(fmt.Errorf("ops: %s: input %d is %s, expected floating-point or complex numbers", what, i, autodiff.ShapeText(n)))
		case n.StopGradient(): // GoMLX would return 0
			panic(fmt.Errorf("ops: %s: input %d is itself a StopGradient, expected a node that gradients reach: apply graph.Identity to it, and compute with the result", what, i))
		}
	}
	return autodiff.Gradient(loss, wrt...)
}

// VJP returns the vector-Jacobian product: the adjoints, one per output with its shape, times the Jacobian of outputs
// by wrt, summed over the outputs, in the shapes of wrt.
func VJP(outputs, adjoints, wrt []*graph.Node) []*graph.Node {
	if err := pairs("adjoint", "output", adjoints, outputs); err != nil {
		panic(fmt.Errorf("ops: VJP: %w", err))
	}
	return gradient("VJP", autodiff.Weighted(outputs, adjoints), wrt)
}

// JVP returns the Jacobian-vector product: the Jacobian of outputs by wrt times the tangents, one per node of wrt with
// its shape. The operations need second derivatives.
func JVP(outputs, wrt, tangents []*graph.Node) []*graph.Node {
	if err := pairs("tangent", "input", tangents, wrt); err != nil {
		panic(fmt.Errorf("ops: JVP: %w", err))
	}
	// VJP is linear in the adjoints; its gradient by them is the JVP.
	adjoints := make([]*graph.Node, len(outputs))
	for i, o := range outputs {
		if o == nil {
			panic(fmt.Errorf("ops: JVP: output %d is nil", i))
		}
		adjoints[i] = graph.OptimizationBarrier(graph.Zeros(o.Graph(), o.Shape()))
	}
	return VJP(VJP(outputs, adjoints, wrt), tangents, adjoints)
}

func pairs(what, of string, a, b []*graph.Node) error {
	if len(a) != len(b) || len(a) == 0 {
		return fmt.Errorf("%d %ss, expected one for each of the %d %ss, and one at least", len(a), what, len(b), of)
	}
	for i := range a {
		if a[i] == nil || b[i] == nil || !a[i].Shape().Equal(b[i].Shape()) {
			return fmt.Errorf("%s %d is %s, expected %s as the %s", what, i, autodiff.ShapeText(a[i]), autodiff.ShapeText(b[i]), of)
		}
	}
	return nil
}

// PerExample returns each example's loss, [batch], and its gradients with respect to each of wrt, [batch, …]. Fields
// have the batch as first axis. loss is called once, with fields of one example, [1, …], and returns a scalar. The
// program processes examples one at a time. wrt are shared by all examples, as variables, and must not be fields.
func PerExample(fields, wrt []*graph.Node, loss func(example []*graph.Node) *graph.Node) (losses *graph.Node, gradients []*graph.Node) {
	fields = slices.Clone(fields)
	wrt = slices.Clone(wrt)
	if loss == nil || len(fields) == 0 || slices.Contains(fields, nil) || slices.Contains(wrt, nil) {
		panic(errors.New("ops: per example: fields, nodes to differentiate by, and a function of the loss are needed, none of them nil"))
	}
	for i, f := range fields {
		if f.Rank() == 0 || f.Shape().Dimensions[0] == 0 || fields[0].Rank() > 0 && f.Shape().Dimensions[0] != fields[0].Shape().Dimensions[0] {
			panic(fmt.Errorf("ops: per example: field %d is %s, and another field is %s: expected the same number of examples along the first axis of each, at least one",
				i, f.Shape(), fields[0].Shape()))
		}
		if slices.Contains(wrt, f) {
			panic(fmt.Errorf("ops: per example: field %d is also a node to differentiate by: an example's loss depends on its own part of it, which is not that node", i))
		}
	}
	_, outs := Scan(nil, fields, func(_, at []*graph.Node) (next, out []*graph.Node) {
		example := make([]*graph.Node, len(at))
		for i, x := range at {
			example[i] = graph.Reshape(x, append([]int{1}, x.Shape().Dimensions...)...)
		}
		l := loss(example)
		return nil, append([]*graph.Node{l}, gradient("per example", l, wrt)...)
	})
	return outs[0], outs[1:]
}
