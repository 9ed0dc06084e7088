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
		return loop.ErrNoState
	}
	next := copied{any: true, value: s.Get()}
	if snapshotter, ok := loop.StateAs[loop.Snapshotter](s); ok {
		snap, err := snapshotter.Snapshot(context.WithoutCancel(ctx)) // a run that is cancelled in this turn ends after it
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
	if _, ok := loop.StateAs[loop.Snapshotter](from); ok {
		return nil
	}
	return checkCopied(from.State())
}

// checkCopied refuses a state that changes in place and has no Snapshot: a copy would change with it.
func checkCopied(state any) error {
	switch reflect.ValueOf(state).Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return fmt.Errorf("a state of type %T changes in place: to restore an earlier one, give it the method Snapshot of loop.Snapshotter", state)
	}
	return nil
}
