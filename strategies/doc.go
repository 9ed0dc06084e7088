// Package strategies has the ways to run a step's graph: [Jit] on one device, [DataParallel] on several, and [Eager]
// operation by operation for debugging.
//
// A strategy knows where values are and how a graph is compiled and run, but not parameters, optimizers or metrics.
package strategies
