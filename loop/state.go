package loop

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// State refers to the state of a run. The zero State refers to none.
type State struct{ at holder }

// StateAt refers to the state in a variable, for loops written by hand.
func StateAt[S any](at *S) State { return State{variable[S]{at}} }

// Get is the state, nil if there is none.
func (s State) Get() any {
	if s.at == nil {
		return nil
	}
	return s.at.get()
}

// Set replaces the state. A value of another type is an error, and so is [ErrNoState].
func (s State) Set(state any) error {
	if s.at == nil {
		return ErrNoState
	}
	return s.at.set(state)
}

// ErrNoState: a change was given no state, in a loop written by hand.
var ErrNoState = errors.New("there is no state: give a Changer one made by loop.StateAt, and a report by loop.WithState")

// holder is a variable with a state of any type.
type holder interface {
	get() any
	pointer() any // to the variable
	set(state any) error
}

type variable[S any] struct{ at *S }

func (v variable[S]) get() any     { return *v.at }
func (v variable[S]) pointer() any { return v.at }

func (v variable[S]) set(state any) error {
	s, ok := state.(S)
	if !ok && state != nil {
		return fmt.Errorf("a state of type %T cannot take the place of one of type %T", state, *v.at)
	}
	*v.at = s
	return nil
}

func (s State) held() State { return s }

// StateAs asserts that the state of a [Report], an [Ending], a [Beginning] or a [State] implements an interface. If the
// value does not, a pointer to it may, which has the methods with a pointer receiver too.
func StateAs[I any](of interface{ held() State }) (found I, ok bool) {
	s := of.held()
	if s.at == nil {
		return found, false
	}
	return as[I](s.at.get(), s.at.pointer())
}

func as[I any](value, pointer any) (found I, ok bool) {
	if found, ok = value.(I); !ok {
		found, ok = pointer.(I)
	}
	return found, ok
}

// Snapshotter is a state that changes in place, such as a pointer or a map, and so must be copied to be kept. A state
// that is a plain value needs no such method.
type Snapshotter interface {
	// Snapshot copies the state as it is now.
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Snapshot is a copy of a state at one moment.
type Snapshot interface {
	// Restore writes the copy back into the state it was taken of. It may be called any number of times.
	Restore(ctx context.Context) error
	// Close frees the copy.
	Close() error
}

// Queued is a state that can be read while batches of a run wait for their steps (see [BlockStepper]), as by data that
// depends on what was learnt. The run then makes these steps first, so that reading the state shows every step whose
// batch has been handed out.
type Queued interface {
	// OnRead gives the state a function that it calls before each time that it is read. The state returns an error of it
	// in place of what was to be read. Before it adds f, OnRead calls the functions that it was given earlier, and
	// returns their error. remove takes f away again.
	OnRead(f func() error) (remove func(), err error)
}

// LearningRater is a state with a learning rate that can be changed during training.
type LearningRater interface {
	LearningRate() (float64, error)
	// SetLearningRate returns ErrRateTooSmall for a rate that is not 0 and would be stored as 0.
	SetLearningRate(rate float64) error
}

// Compiler is a state whose steps are compiled when they first meet a shape of batch.
type Compiler interface {
	// CompilingSince is when the compilation that is going on began, false if there is none. Any goroutine may ask.
	CompilingSince() (time.Time, bool)
}

// ErrRateTooSmall: the type of the stored learning rate would round it to 0.
var ErrRateTooSmall = errors.New("too small a learning rate")
