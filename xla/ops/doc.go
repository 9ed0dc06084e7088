// Package ops has graph operations that GoMLX lacks: loops over the places of a sequence, conditional loops and
// branches; derivatives of any order; and linear algebra.
//
//	last, outputs := ops.Scan(carry, xs, func(carry, x []*graph.Node) (next, out []*graph.Node) {
//		h := cell(carry[0], x[0])
//		return []*graph.Node{h}, []*graph.Node{h}
//	})
//
// # Loops and branches
//
// [Scan] iterates along an axis, for recurrences, decoding or inner training. The compilation time does not depend on
// the length. [Cond] and [Switch] run one branch. [While] runs as long as a condition is true. All but While have
// gradients of any order, and all may be nested.
//
// A body may use nodes of the graph from outside, draw random numbers and set variables, if the graph belongs to a step
// of package managed or another user of GoMLX's model.Store. Variables that it sets are carried along. Other nodes of a
// body must be returned for use outside.
//
// A body is called once, to record its operations, without values; under the strategy Eager and on GoMLX's backend in
// Go once per place. GoMLX's backend in Go has no Cond and no Switch. A body with layers by In must take their scope
// from managed.Builder.Scope when it is called.
//
// # Derivatives
//
// [Gradient], products with the Jacobian from either side ([VJP], [JVP]), and gradients per example ([PerExample]) may
// be nested and used in bodies:
//
//	dw := ops.Gradient(loss, w)[0]
//	hv := ops.JVP([]*graph.Node{dw}, []*graph.Node{w}, []*graph.Node{v})[0] // the Hessian times v
//
// docs/maintain/gradients.md lists the operations with derivatives, and their values at points without a unique slope.
//
// # Linear algebra
//
// For matrices [batch…, n, n]: the Cholesky factor and the solution of triangular systems. A⁻¹·b, for a positive
// definite A = L·Lᵀ, is
//
//	l := ops.Cholesky(a)
//	x := ops.SolveUpper(graph.Transpose(l, -2, -1), ops.SolveLower(l, b))
//
// and log det A is twice the sum of the logarithms of l's diagonal. Each is a loop of n matrix-vector products.
//
// # Errors
//
// Like GoMLX's graph functions, these panic with an error. The step that is being built returns it.
package ops
