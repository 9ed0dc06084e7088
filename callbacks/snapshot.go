package callbacks

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

type copied struct {
	any   bool
	value any
	snap  loop.Snapshot // nil: copied by assignment
}

func (c *copied) take(ctx context.Context, r loop.Report) error {
	if r.StatePointer() == nil {
		return errNoState
	}
	next := copied{any: true, value: r.State()}
	if state, ok := abilities.StateAs[snapshotter](r); ok {
		snap, err := state.Snapshot(context.WithoutCancel(ctx)) // a cancelled run finishes this turn
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		next.snap = snap
	} else if err := checkCopied(r.State()); err != nil {
		return err
	}
	err := c.close()
	*c = next
	return err
}

func (c *copied) restore(ctx context.Context, r loop.Report) error {
	before := r.State()
	if err := r.SetState(c.value); err != nil || c.snap == nil {
		return err
	}
	if err := c.snap.Restore(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), r.SetState(before))
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

func keepable(from loop.Beginning) error {
	if _, ok := abilities.StateAs[snapshotter](from); ok {
		return nil
	}
	return checkCopied(from.State())
}

var errNoFunction = errors.New("no function given")

var errNoState = errors.New("the report has no state: give the change a report made by Report.With")

type snapshotter interface {
	Snapshot(ctx context.Context) (loop.Snapshot, error)
}

func checkCopied(state any) error {
	switch reflect.ValueOf(state).Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return fmt.Errorf("a state of type %T changes in place: to restore an earlier one, give it the method Snapshot that loop.Stepper describes", state)
	}
	return nil
}
