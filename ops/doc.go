// Package ops has operations for the graph of a step that GoMLX has not, with derivatives of any order: loops over the
// places of a sequence, loops with a condition and branches; derivatives; and linear algebra.
//
//	last, outputs := ops.Scan(carry, xs, func(carry, x []*graph.Node) (next, out []*graph.Node) {
//		h := cell(carry[0], x[0])
//		return []*graph.Node{h}, []*graph.Node{h}
//	})
//
// # Loops and branches
//
// [Scan] is for what goes step by step along an axis: recurrences, decoding, inner training. Its body is traced once
// and written into the program once, however long the sequence is, so that a program over 512 places compiles as fast
// as one over 8. [Cond] and [Switch] run one branch and leave the others alone; [While] runs as long as a condition
// says. All but While have gradients, of any order, and all may stand in each other's bodies.
//
// A body may use any node of the graph from outside it, draw random numbers and set variables, if the graph belongs to
// a step of package managed or another user of GoMLX's model.Store: such variables are carried along. What a body makes
// is not there outside of it; it must be returned.
//
// A body is a function of the graph: it is called once, to be traced, and never with values. Under the strategy Eager
// it is called once for each place instead, and the values of its nodes can be read by xla.Value. So it is on GoMLX's
// backend in Go, which has no Cond and no Switch. A body with layers by In takes their scope from managed.Builder.Scope
// when it is called: a scope that it takes in from outside it has used in its first call.
//
// # Derivatives
//
// [Gradient], products with the Jacobian from either side ([VJP], [JVP]), and the gradients of each example of a batch
// ([PerExample]), also inside of each other and inside bodies:
//
//	dw := ops.Gradient(loss, w)[0]
//	hv := ops.JVP([]*graph.Node{dw}, []*graph.Node{w}, []*graph.Node{v})[0] // the Hessian times v
//
// docs/maintain/gradients.md lists the operations that have derivatives, and their values where a function has no
// single slope.
//
// # Linear algebra
//
// Of matrices [batch…, n, n]: the factor of a positive definite matrix, and the solution of equations with a triangular
// one. So A⁻¹·b, for a positive definite A = L·Lᵀ, is
//
//	l := ops.Cholesky(a)
//	x := ops.SolveUpper(graph.Transpose(l, -2, -1), ops.SolveLower(l, b))
//
// and the logarithm of A's determinant twice the sum of those of l's diagonal. Each is a loop of n turns, a product of
// a matrix with a vector in each: for the matrices of a Gaussian process or a whitening, not for thousands of rows.
//
// # Errors
//
// These are functions of a graph, as GoMLX's are: they panic with an error, which the step that is being built gives as
// its own.
package ops
