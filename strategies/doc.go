// Package strategies holds the ways in which the graph of a step runs: [Jit] compiles it to one program on one device,
// [DataParallel] to one program on several, [Eager] runs it operation by operation, so that its values can be looked
// at.
//
// A strategy knows where values live and how a graph is compiled and run. It knows nothing of parameters, optimizers
// or metrics: these are the business of package managed.
package strategies
