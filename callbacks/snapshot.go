package callbacks

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lazo-ml/lazo/loop"
)

// copied is a copy of an earlier state. The zero value has none.
type copied struct {
	any   bool
	value any
	snap  loop.Snapshot // nil where the value is its own copy
}

// take copies a state, in place of the copy before.
func (c *copied) take(ctx context.Context, s loop.State) error {
	if s == (loop.State{}) {
		return errNoState
	}
	next := copied{any: true, value: s.Get()}
	if state, ok := loop.StateAs[snapshotter](s); ok {
		snap, err := state.Snapshot(context.WithoutCancel(ctx)) // a run that is cancelled in this turn ends after it
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		next.snap = snap
	} else if err := checkCopied(s.Get()); err != nil {
		return err
	}
	err := c.close()
	*c = next
	return err
}

// restore replaces the present state by the copy.
func (c *copied) restore(ctx context.Context, s loop.State) error {
	before := s.Get()
	if err := s.Set(c.value); err != nil || c.snap == nil {
		return err
	}
	if err := c.snap.Restore(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), s.Set(before))
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

// keepable is an error if the state that a run begins with cannot be copied.
func keepable(from loop.Beginning) error {
	if _, ok := loop.StateAs[snapshotter](from); ok {
		return nil
	}
	return checkCopied(from.State())
}

// errNoFunction: a callback or an option was given no function to call.
var errNoFunction = errors.New("no function given")

// errNoState: a change was given no state, in a loop written by hand.
var errNoState = errors.New("there is no state: give the change one made by loop.StateAt")

// snapshotter is a state that changes in place.
type snapshotter interface {
	Snapshot(ctx context.Context) (loop.Snapshot, error)
}

// checkCopied refuses a state that changes in place and has no Snapshot: a copy would change with it.
func checkCopied(state any) error {
	switch reflect.ValueOf(state).Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return fmt.Errorf("a state of type %T changes in place: to restore an earlier one, give it the method Snapshot that loop.State describes", state)
	}
	return nil
}
