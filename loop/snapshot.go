package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// copied is an earlier state, kept. The zero value has none.
type copied struct {
	any   bool
	value any
	snap  Snapshot // nil where the value is its own copy
}

// take keeps the state of a report instead of the one before.
func (c *copied) take(ctx context.Context, r Report) error {
	if r.state == nil {
		return errNoState
	}
	next := copied{any: true, value: r.State()}
	if s, ok := as[Snapshotter](next.value, r.state.place()); ok {
		snap, err := s.Snapshot(context.WithoutCancel(ctx)) // a run that is cancelled in this turn ends behind it
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		next.snap = snap
	} else if next.value != nil { // of a type that an interface may have hidden
		if err := checkCopied(reflect.TypeOf(next.value)); err != nil {
			return err
		}
	}
	err := c.close()
	*c = next
	return err
}

// restore puts the kept state into the place of the report's.
func (c *copied) restore(ctx context.Context, r Report) error {
	if r.state == nil {
		return errNoState
	}
	before := r.state.get()
	if err := r.state.set(c.value); err != nil || c.snap == nil {
		return err
	}
	if err := c.snap.Restore(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), r.state.set(before))
	}
	return nil
}

func (c *copied) close() error {
	snap := c.snap
	*c = copied{}
	if snap == nil {
		return nil
	}
	return snap.Close()
}

// checkCopied tells whether states of a type can be kept: one that is changed in place and cannot be copied would be
// "restored" to itself.
func checkCopied(t reflect.Type) error {
	if snapshotter := reflect.TypeFor[Snapshotter](); t.Implements(snapshotter) || reflect.PointerTo(t).Implements(snapshotter) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return fmt.Errorf("a state of type %s changes in place: to restore an earlier one, give it the method Snapshot of loop.Snapshotter", t)
	}
	return nil
}
