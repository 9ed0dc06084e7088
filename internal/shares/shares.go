// Package shares has types for saving one state from several processes, for packages managed and checkpoint.
package shares

import "io"

// Part is a box of a sharded tensor, whose parts have the same Dims and form a grid that covers it.
type Part struct {
	Start, Dims []int
	// Data and Write are those of checkpoint.Tensor, for this part.
	Data  []byte
	Write func(io.Writer) error
}

// Share identifies one of several processes that save a state into one checkpoint, each with a checkpoint.Folder of the
// same place.
type Share struct {
	Rank, Of int
	// At is the slot from Folder.Begin at rank 0, equal in all processes. Sharded tensors require it.
	At Slot
}

type Slot struct{ Again, Token int64 }
