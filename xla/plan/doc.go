// Package plan estimates a step's memory, FLOPs, exchanged bytes and time on a machine that need not be present.
//
// [Step.For] compiles a program for a described machine ([xla.OpenTopology]) and returns a [Report], as does lazo plan.
// Figures come from XLA's optimized program; docs/plan.md explains them and their limits.
package plan
