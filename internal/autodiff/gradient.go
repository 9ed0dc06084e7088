package autodiff

import (
	"errors"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// Gradient returns the gradients of a scalar loss by each of wrt, in their shapes. Unlike graph.Gradient it panics if a
// closure's captures would be ignored.
func Gradient(loss *graph.Node, wrt ...*graph.Node) []*graph.Node {
	refuseClosures(loss, wrt)
	refuseConstants(loss, wrt)
	return graph.Gradient(loss, wrt...)
}

var errConstant = errors.New("autodiff: gradient: by a constant of the graph, which loops and branches build again as their own: the gradient through " +
	"them would be missing: make it a parameter of the graph or a variable, or add 0 times one to it")

func refuseConstants(loss *graph.Node, wrt []*graph.Node) {
	from := map[*graph.Node]bool{} // constants that depend on wrt
	for _, n := range wrt {
		if constant(n) {
			from[n] = true
		}
	}
	if len(from) == 0 {
		return
	}
	for _, n := range loss.Graph().Nodes() {
		if !from[n] && constant(n) && slices.ContainsFunc(takenBy(n), func(in *graph.Node) bool { return from[in] }) {
			from[n] = true
		}
	}
	var refuse func(n *graph.Node)
	refuse = func(n *graph.Node) {
		for _, t := range bodiesOf(n) {
			own := slices.Clone(t.outputs)
			for _, in := range t.nodes {
				own = append(own, takenBy(in)...)
				refuse(in)
			}
			if slices.ContainsFunc(own, func(in *graph.Node) bool { return from[in] }) {
				panic(errConstant)
			}
		}
	}
	walk(loss, wrt, func(n *graph.Node) bool { refuse(n); return true })
}

func bodiesOf(n *graph.Node) []*traced {
	if b := branchOf(n); b != nil {
		return b.bodies
	}
	if l := loopOf(n); l != nil {
		return []*traced{l.body}
	}
	return nil
}

// Weighted returns the sum of values times weights, real. Its gradient is the vector-Jacobian product.
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

func ShapeText(n *graph.Node) string {
	if n == nil {
		return "nil"
	}
	return n.Shape().String()
}

// Reaches reports whether a gradient of loss flows to one of wrt, through floating-point nodes and no StopGradient.
func Reaches(loss *graph.Node, wrt ...*graph.Node) bool {
	left := Unreached(loss, wrt...)
	return slices.ContainsFunc(wrt, func(n *graph.Node) bool { return !left[n] })
}

// Unreached returns those of wrt to which no gradient of loss flows.
func Unreached(loss *graph.Node, wrt ...*graph.Node) map[*graph.Node]bool {
	left := map[*graph.Node]bool{}
	for _, n := range wrt {
		left[n] = true
	}
	walk(loss, wrt, func(n *graph.Node) bool { delete(left, n); return true })
	return left
}

// Bypasses reports whether a gradient of loss flows to from without passing by.
func Bypasses(loss, from, by *graph.Node) (bypasses bool) {
	walk(loss, []*graph.Node{from}, func(n *graph.Node) bool {
		bypasses = bypasses || n == from
		return n != by
	})
	return bypasses
}

var errClosure = errors.New("autodiff: gradient: the loss depends on an If or a While, expected operations that have a gradient " +
	"(what a closure of GoMLX takes from outside would get 0): use ops.Cond, ops.Switch, ops.Scan or graph.Where, or put graph.StopGradient around its results")

// An If or While built after one of wrt has no gradient. GoMLX reports their inputs, but captured nodes would get 0.
func refuseClosures(loss *graph.Node, wrt []*graph.Node) {
	walk(loss, wrt, func(n *graph.Node) bool {
		if kind := n.Type(); (kind == graph.NodeTypeIf || kind == graph.NodeTypeWhile) && !slices.Contains(wrt, n) && loopOf(n) == nil && branchOf(n) == nil {
			panic(errClosure)
		}
		return true
	})
}

// walk visits each node that the gradient of loss passes on the way to wrt, and those before it if visit returns true.
// Nodes older than wrt do not depend on them.
func walk(loss *graph.Node, wrt []*graph.Node, visit func(*graph.Node) bool) {
	if loss == nil || len(wrt) == 0 {
		return // graph.Gradient reports this
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
		if !visit(n) {
			return
		}
		for _, input := range n.Inputs() {
			from(input)
		}
	}
	from(loss)
}
