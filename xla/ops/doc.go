// Package ops has graph operations that GoMLX lacks: loops over the places of a sequence, conditional loops and
// branches; derivatives of any order; and linear algebra.
//
// # Loops and branches
//
// [Scan] iterates along an axis, for recurrences, decoding or inner training. The compilation time does not depend on
// the length. [Cond] and [Switch] run one branch. [While] iterates while a condition is true. All but While have
// gradients of any order, and all may be nested.
//
// A body may use outer nodes of the graph. In a step of package managed, or another user of GoMLX's model.Store, it may
// draw random numbers and set variables, which are carried along. It must return other nodes for use outside.
//
// A body is called once, to record its operations, without values; under the strategy Eager and on GoMLX's backend in
// Go, which has no Cond and no Switch, once per place. A body with layers by In must take their scope from
// managed.Builder.Scope when it is called.
//
// # Derivatives
//
// [Gradient], products with the Jacobian from either side ([VJP], [JVP]), and gradients per example ([PerExample]) may
// be nested and used in bodies: the JVP of a Gradient is the Hessian times a vector. docs/maintain/gradients.md lists
// the operations with derivatives, and their values at points without a unique slope.
//
// # Linear algebra
//
// For matrices [batch…, n, n]: the Cholesky factor and the solution of triangular systems, each a loop of n
// matrix-vector products. log det A is twice the sum of the logarithms of the factor's diagonal.
//
// # Errors
//
// Like GoMLX's graph functions, these panic with an error. The step that is being built returns it.
package ops
