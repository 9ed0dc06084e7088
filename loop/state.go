package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/abilities"
)

// State refers to the state of a run. The zero State refers to none.
//
// The state itself can be any value. Some callbacks and options ask it for a method. A state without the method may
// have a method State() any that returns a value with it, as a flaxlike.Model does.
//
// A state that changes in place, such as a pointer or a map, must be copied to be kept:
//
//	Snapshot(ctx context.Context) (loop.Snapshot, error)
//
// callbacks.ReduceOnPlateau needs the learning rate:
//
//	LearningRate() (float64, error)
//	SetLearningRate(rate float64) error
//
// A state that can be read while batches of a run wait for their steps (see [Stepper]), as by data that depends on what
// was learnt, has
//
//	OnRead(f func() error) (remove func(), err error)
//
// which gives it a function to call before each time that it is read; an error of it is returned in place of what was
// to be read. Before it adds f, OnRead calls the functions that it was given earlier. Any goroutine may call f. While
// the data source has control, f makes the waiting steps, so that reading the state from any goroutine shows every step
// whose batch was handed out. On a goroutine of data.Prefetch or data.ParallelMap, which make batches before the steps
// of earlier ones, f returns an error. The state of several processes has a method Job, see [Job]. checkpoint.State has
// the methods by which a state is saved.
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

// Set replaces the state. A value of another type is an error, and so is a State that refers to none.
func (s State) Set(state any) error {
	if s.at == nil {
		return errNoState
	}
	return s.at.set(state)
}

// errNoState: a change was given no state, in a loop written by hand.
var errNoState = errors.New("there is no state: give the change one made by loop.StateAt")

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
// value does not, the result of its method State() any may, if it has one, or a pointer to it, which has the methods
// with a pointer receiver too.
func StateAs[I any](of interface{ held() State }) (found I, ok bool) {
	s := of.held()
	if s.at == nil {
		return found, false
	}
	return as[I](s.at.get(), s.at.pointer())
}

func as[I any](value, pointer any) (found I, ok bool) {
	if found, ok = abilities.As[I](value); !ok {
		found, ok = pointer.(I)
	}
	return found, ok
}

// Snapshot is a copy of a state at one moment.
type Snapshot interface {
	// Restore writes the copy back into the state it was taken of. It may be called any number of times.
	Restore(ctx context.Context) error
	// Close frees the copy.
	Close() error
}
