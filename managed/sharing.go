package managed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/gate"
)

// access says who may use a state beside whom, by two gates.
//
//   - values guards the buffers of the storage, and what the settings know of the last batch: those who read share it,
//     who changes has it alone.
//   - structure is held by one at a time: who builds or compiles a step, or changes what steps are built from. It guards
//     the definition, the programs, the sets that the storage has on the device, and what the settings know of optimizers.
//
// What both use (which variables there are, the strategy, the given values, what was saved) changes only with both
// held, so one is enough to read it. Who needs both enters structure first. What has a lock of its own, as pins and the
// last run, says so.
type access struct {
	structure, values gate.Gate
	training          atomic.Bool // a training step is being made
}

// changeAll has all of the state alone. Of the steps that were begun it does not wait for the last.
func (a *access) changeAll(ctx context.Context) (done func(), err error) {
	if err := a.structure.Change(ctx); err != nil {
		return nil, ofState(err)
	}
	if err := a.values.Change(ctx); err != nil {
		a.structure.DoneChanging()
		return nil, ofState(err)
	}
	return func() { a.values.DoneChanging(); a.structure.DoneChanging() }, nil
}

// peekValues shares the values with those who read them, for a method that has no error to give and asks for what is
// not gone when the state is closed: nobody changes it then, nor while the function of a step asks, for which the state
// is held.
func (a *access) peekValues() (done func()) {
	switch err := a.values.Read(context.Background()); {
	case err == nil:
		return a.values.DoneReading
	case errors.Is(err, ErrClosed):
		a.values.Close() // waits
	}
	return func() {}
}

// peekAll is peekValues with the structure.
func (a *access) peekAll() (done func()) {
	if err := a.structure.Change(context.Background()); err != nil {
		if errors.Is(err, ErrClosed) {
			a.structure.Close() // waits
		}
		return a.peekValues()
	}
	doneValues := a.peekValues()
	return func() { doneValues(); a.structure.DoneChanging() }
}

// readValues shares the values with others who read them, when the steps that were begun are over.
func (s *State) readValues(ctx context.Context) (done func(), err error) {
	if err := s.access.values.Read(ctx); err != nil {
		return nil, ofState(err)
	}
	if err := s.storage.last.settled(); err != nil {
		s.access.values.DoneReading()
		return nil, err
	}
	return s.access.values.DoneReading, nil
}

// readAll is readValues with the structure.
func (s *State) readAll(ctx context.Context) (done func(), err error) {
	if err := s.access.structure.Change(ctx); err != nil {
		return nil, ofState(err)
	}
	doneValues, err := s.readValues(ctx)
	if err != nil {
		s.access.structure.DoneChanging()
		return nil, err
	}
	return func() { doneValues(); s.access.structure.DoneChanging() }, nil
}

// ofState says that the error of a gate is the state's.
func ofState(err error) error {
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("the state: %w", err)
	}
	return err
}

// notInBuild sends those away who would wait for themselves: the function of a step, which runs while its state is
// held.
func notInBuild() error {
	callers := make([]uintptr, 512)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasSuffix(f.Function, "managed.(*Stepper).compile") || strings.Contains(f.Function, "managed.(*Stepper).compile.func") {
			return fmt.Errorf("the state is %w: the function of a step that is being built cannot wait for the state: ask before the step", ErrBusy)
		}
	}
	return nil
}

// quoted lists names for a message.
func quoted(names []string) string {
	text := make([]string, len(names))
	for i, name := range names {
		text[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(text, ", ")
}
