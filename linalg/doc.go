// Package linalg has linear algebra for the graph of a step, of matrices [batch…, n, n], with derivatives of any order:
// the factor of a positive definite matrix, and the solution of equations with a triangular one. So A⁻¹·b, for a
// positive definite A = L·Lᵀ, is
//
//	l := linalg.Cholesky(a)
//	x := linalg.SolveUpper(graph.Transpose(l, -2, -1), linalg.SolveLower(l, b))
//
// and the logarithm of A's determinant twice the sum of those of l's diagonal.
//
// Each is a loop of n turns, a product of a matrix with a vector in each: for the matrices of a Gaussian process or a
// whitening, not for thousands of rows.
//
// These are functions of a graph, as GoMLX's are: they panic with an error, which the step that is being built gives as
// its own.
package linalg
