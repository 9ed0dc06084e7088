// Package cost counts what one run of a program costs a device, from the text of the program as XLA has it after its
// optimizations: floating-point operations, bytes of memory, what the devices exchange, and the largest values.
//
// [Count] counts loops as often as they run and what is computed again again, in the types that the compiler chose.
// What the text does not say is named in [Counts]: operations that are not known, and loops of which nobody knows how
// often they run. It imports no plugin and runs nothing; the text is that of xla.Program.Optimized. What each figure
// means stands in docs/plan.md.
package cost
