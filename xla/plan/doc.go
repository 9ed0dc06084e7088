// Package plan says what a step will cost on a machine that need not be there: whether it fits into a device's memory,
// what that is full of, how many floating-point operations it takes, how many bytes its devices exchange, and an
// estimate of its time.
//
// [Step.For] has a program compiled for a described machine ([xla.OpenTopology]) and gives a [Report]; the command lazo
// plan does the same from the command line. [cost.Count] counts alone, from the text of a program that is there
// already.
//
// All is read from the program as XLA has it after its optimizations, so it is what the devices are given to do: after
// the division over devices, with what is computed again, in the types that the compiler chose. What each figure means
// and what it does not say stands in docs/plan.md.
package plan
