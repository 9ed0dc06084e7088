// Package shares has the types by which several processes save one state together: managed gives them, checkpoint
// writes them.
package shares

import "io"

// Part is a box of a tensor that is sharded over several processes. The parts of a tensor have the same Dims, lie on
// the grid of these, and together are all of it, each once.
type Part struct {
	// Start is where the part begins along each axis, Dims its length there.
	Start, Dims []int
	// Data and Write are those of a checkpoint.Tensor, of the part alone.
	Data  []byte
	Write func(io.Writer) error
}

// Share says that content is that of one of several processes that save a state together into one checkpoint, each by
// a checkpoint.Folder of the same place. Each writes the parts that it gives of sharded tensors. Rank 0, whose folder
// alone is opened to be written, writes the rest, waits for the others' parts, and completes the checkpoint.
type Share struct {
	// Rank is the process's number, from 0 to Of-1.
	Rank, Of int
	// At is the slot that Folder.Begin returned at rank 0 for the step. It is the same in all processes, and needed where
	// a tensor is sharded.
	At Slot
}

// Slot is the place of a checkpoint's files before it is complete: two numbers of at least 0, to be sent to the other
// processes.
type Slot struct{ Again, Token int64 }
