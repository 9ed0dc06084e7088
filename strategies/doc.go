// Package strategies has the ways to run a step's graph: [Jit] compiles it for one device, [DataParallel] for several
// devices, and [Eager] runs it operation by operation for debugging.
//
// A strategy stores values on devices, and compiles and runs graphs. Parameters, optimizers and metrics belong to
// package managed.
package strategies
