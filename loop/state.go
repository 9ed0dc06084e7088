package loop

import (
	"context"
	"errors"
)

// Snapshotter is a state that changes in place, and so has to be copied to be kept: a pointer, a map. A state that is a
// plain value is its own copy and needs no such method.
type Snapshotter interface {
	// Snapshot copies the state as it is now.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is a copy of a state at one moment.
type Snapshot interface {
	// Restore puts the copy back into the state that it was taken of, any number of times.
	Restore(ctx context.Context) error
	// Close frees the copy.
	Close() error
}

// LearningRater is a state with a learning rate that can be changed while it trains.
type LearningRater interface {
	LearningRate() (float64, error)
	// SetLearningRate gives ErrRateTooSmall for a rate that is not 0 and would be held as 0.
	SetLearningRate(rate float64) error
}

// ErrRateTooSmall: the number that holds a learning rate would make 0 of it.
var ErrRateTooSmall = errors.New("too small a learning rate")
