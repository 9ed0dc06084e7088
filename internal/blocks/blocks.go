// Package blocks has the limits for blocks of steps: package data lays out their batches, package strategies builds the
// program, package managed requests it.
package blocks

const (
	// Steps is the largest block; more gains nothing measurable.
	Steps = 100
	// BatchNumbers and StateNumbers limit the numbers in a batch and in the state for which blocks are used. Larger
	// batches need a hundred times the memory; the call of about 10 us then costs nothing.
	BatchNumbers = 1 << 16
	StateNumbers = 1 << 20
)
