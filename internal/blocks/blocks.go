// Package blocks holds the limits of steps that are made in blocks, many by one run of a program: package data lays out
// batches for it, package strategies builds the program, package managed asks for it.
package blocks

const (
	// Steps is how many are made at once, at most: more gains nothing that could be measured.
	Steps = 100
	// BatchNumbers and StateNumbers are up to how many numbers of a batch, and of the state, a step is made in blocks.
	// A larger batch takes memory a hundred times over, and its step so long that the call of its program, some 10 us,
	// costs nothing; a larger state too. In between, what counts is that XLA on the CPU runs many small operations
	// three times as fast inside a loop: a step on 300 variables of 10 to 300 numbers takes 0.9 ms in place of 2.6.
	BatchNumbers = 1 << 16
	StateNumbers = 1 << 20
)
