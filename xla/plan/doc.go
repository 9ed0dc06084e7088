// Package plan estimates what a step costs on a machine that need not be present: its fit into a device's memory, the
// largest values, FLOPs, exchanged bytes and time.
//
// [Step.For] compiles a program for a described machine ([xla.OpenTopology]) and returns a [Report]; the command lazo
// plan does the same. [cost.Count] counts an existing program's text.
//
// All figures come from XLA's optimized program: after sharding, with recomputation, in the compiler's dtypes.
// docs/plan.md explains each figure and its limits.
package plan
