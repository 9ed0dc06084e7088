package loop

import (
	"context"
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
	SetLearningRate(rate float64) error
}

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
	if s, ok := next.value.(Snapshotter); ok {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		next.snap = snap
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
	if c.snap != nil {
		if err := c.snap.Restore(ctx); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	return r.state.set(c.value)
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
func checkCopied[S any]() error {
	t := reflect.TypeFor[S]()
	if t.Implements(reflect.TypeFor[Snapshotter]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return fmt.Errorf("a state of type %s changes in place: to restore an earlier one, give it the method Snapshot of loop.Snapshotter", t)
	}
	return nil
}
