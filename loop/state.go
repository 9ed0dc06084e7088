package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lazo-ml/lazo/internal/abilities"
)

var (
	errNoState  = errors.New("the report has no state: give the change a report made by Report.With")
	errObserves = errors.New("a callback without Changes cannot change the state")
)

func stateAt(pointer any) any {
	if v := reflect.ValueOf(pointer); v.Kind() == reflect.Pointer && !v.IsNil() {
		return v.Elem().Interface()
	}
	return nil
}

func setState(pointer, state any) error {
	at := reflect.ValueOf(pointer)
	if at.Kind() != reflect.Pointer || at.IsNil() {
		return errNoState
	}
	at = at.Elem()
	switch v := reflect.ValueOf(state); {
	case state == nil:
		at.SetZero()
	case v.Type() == at.Type(), at.Kind() == reflect.Interface && v.Type().Implements(at.Type()):
		at.Set(v)
	default:
		return fmt.Errorf("a state of type %T cannot replace one of type %s", state, at.Type())
	}
	return nil
}

func as[I any](value, pointer any) (found I, ok bool) {
	if found, ok = abilities.As[I](value); !ok {
		found, ok = pointer.(I)
	}
	return found, ok
}

// Snapshot is a copy of a state at one moment.
type Snapshot interface {
	// Restore writes the copy back into its state, also repeatedly.
	Restore(ctx context.Context) error
	Close() error
}
