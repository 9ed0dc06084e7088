// Package strategies has the ways to run a step's graph: [Jit] on one device, [DataParallel] on several, and [Eager]
// operation by operation for debugging. Package managed adds parameters, optimizers and metrics.
package strategies
