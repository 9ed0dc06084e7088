// Package cost counts the cost of a program's run on a device from its optimized HLO: floating-point operations,
// bytes of memory, exchanges between devices, and the largest values.
//
// [Count] multiplies loops by their trips and includes recomputation. docs/plan.md explains the figures.
package cost
