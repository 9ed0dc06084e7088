package autodiff

import (
	"errors"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// Gradient returns the gradients of loss, a scalar, with respect to each of wrt, in their order and shapes. It is
// graph.Gradient with the rules of this package, but panics where that would leave out what a closure takes in.
func Gradient(loss *graph.Node, wrt ...*graph.Node) []*graph.Node {
	refuseClosures(loss, wrt)
	return graph.Gradient(loss, wrt...)
}

// Weighted is the sum of values times weights of their shapes, as a real number: what is differentiated for the product
// of weights and a Jacobian.
func Weighted(values, weights []*graph.Node) (sum *graph.Node) {
	for i, y := range values {
		y = graph.ReduceAllSum(graph.Mul(y, weights[i]))
		if t := y.DType(); t.IsComplex() {
			y = graph.ConvertDType(y, t.RealDType())
		}
		if sum == nil {
			sum = y
		} else {
			sum = graph.Add(sum, graph.ConvertDType(y, sum.DType()))
		}
	}
	return sum
}

// ShapeText is the shape of a node, or nil, for a message.
func ShapeText(n *graph.Node) string {
	if n == nil {
		return "nil"
	}
	return n.Shape().String()
}

// Reaches reports whether a gradient of loss can flow to one of wrt: whether loss is computed from it by floating-point
// numbers alone, with no StopGradient between.
func Reaches(loss *graph.Node, wrt ...*graph.Node) bool {
	found := false
	walk(loss, wrt, func(n *graph.Node) { found = found || slices.Contains(wrt, n) })
	return found
}

var errClosure = errors.New("autodiff: gradient: the loss depends on an If or a While, expected operations that have a gradient " +
	"(what a closure of GoMLX takes from outside would get 0): use ops.Cond, ops.Switch, ops.Scan or graph.Where, or put graph.StopGradient around its results")

// refuseClosures panics where loss depends on an If or a While that was built after one of wrt. GoMLX knows no gradient
// of them. It says so where their own inputs are differentiated; but what their closures take from outside is no input,
// and gets 0.
func refuseClosures(loss *graph.Node, wrt []*graph.Node) {
	walk(loss, wrt, func(n *graph.Node) {
		if kind := n.Type(); (kind == graph.NodeTypeIf || kind == graph.NodeTypeWhile) && !slices.Contains(wrt, n) && loopOf(n) == nil && branchOf(n) == nil {
			panic(errClosure)
		}
	})
}

// walk visits once each node that the gradient of loss would pass on its way to wrt. Nodes older than all of wrt depend
// on none.
func walk(loss *graph.Node, wrt []*graph.Node, visit func(*graph.Node)) {
	if loss == nil || len(wrt) == 0 {
		return // graph.Gradient's to say
	}
	first := loss.Id()
	for _, n := range wrt {
		if n == nil || n.Graph() != loss.Graph() {
			return
		}
		first = min(first, n.Id())
	}
	visited := map[*graph.Node]bool{}
	var from func(n *graph.Node)
	from = func(n *graph.Node) {
		number := n.NumOutputs() > 1 || n.DType().IsFloat() || n.DType().IsComplex()
		if visited[n] || n.Id() < first || n.StopGradient() || !number {
			return
		}
		visited[n] = true
		visit(n)
		for _, input := range n.Inputs() {
			from(input)
		}
	}
	from(loss)
}
