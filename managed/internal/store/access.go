package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/xla"
)

// Access says who may use a state next to whom, by two gates.
//
//   - values guards the buffers, and what the settings know of the last batch: those who read share it,
//     who changes has it alone.
//   - structure is held by one at a time: who builds or compiles a step, or changes what steps are built from. It guards
//     the definition, the programs, the sets on the device, and what the settings know of optimizers.
//
// What both use (which variables there are, the strategy, the given values, what was saved) changes only with both
// held, so one is enough to read it. Who needs both enters structure first. What has a lock of its own, as pins and the
// last run, says so.
//
//	call                                            structure    values   for how long
//	Value, Wait, Snapshot, Content, View, Stepper.Await          shared   the copy; a wait for the last run
//	Names, Strategy                                              shared   a look
//	Summary, Parameters, Settings, DumpXLA          alone        shared   a look
//	LearningRate, RatesInForce, Clone               alone        shared   the copy
//	SetValue, SetLearningRate, SetOptimizer, MoveTo, Restore,
//	Reset                                           alone        alone    the copy
//	a step that changes nothing; one of a view                   shared   the start of its program
//	a step that changes values                                   alone    the start of its program
//	a step by eager                                 alone        alone    the step, with its function
//	BeginEvaluation, and its end                                 alone    a look; the end waits for the last run
//	a step's first run, Prepare, Export             alone                 the function and the compilation,
//	                                                             alone    then new variables are moved in
//	a training step or block, next to its gates: the flag training, for all of it
//
// Before all of these but the looks, Stepper.Await and the end of an evaluation, BeforeRead calls the functions of
// OnRead, which make the steps that wait; no gate is held then.
//
// Under eager, and while a step is built, the caller's functions run while structure is held: those of steps, and those
// that say which variables a step trains or draws. The goroutine that holds structure is noted. What it asks of the
// same state is ErrBusy, whether it would have to wait or not.
type Access struct {
	structure, values gate.Gate
	holder            atomic.Pointer[holder] // who holds structure; nil for those who only look
	readers           readers                // what is called before the values are used
}

// holder is who holds the structure of a state.
type holder struct {
	goroutine string
	values    bool // it is in the values too
}

// goroutine is the name of the one that asks.
func goroutine() string {
	var text [64]byte // "goroutine 18 [running]: …"
	name, _, _ := strings.Cut(string(text[:runtime.Stack(text[:], false)]), " [")
	return name
}

// within is the holder of the structure if it is the goroutine that asks, else nil.
func (a *Access) within() *holder {
	if h := a.holder.Load(); h != nil && h.goroutine == goroutine() {
		return h
	}
	return nil
}

// NotWithin sends those away who would wait for themselves, or see values in the middle of a change.
func (a *Access) NotWithin() error {
	if a.within() != nil {
		return fmt.Errorf("the state is %w: the function of a step that is being built cannot wait for the state: ask before the step", xla.ErrBusy)
	}
	return nil
}

// HoldStructure has the structure alone, until done. Whoever has it already is sent away.
func (a *Access) HoldStructure(ctx context.Context) (done func(), err error) {
	if err := a.NotWithin(); err != nil {
		return nil, err
	}
	if err := a.structure.Change(ctx); err != nil {
		return nil, ofState(err)
	}
	a.holder.Store(&holder{goroutine: goroutine()})
	return func() { a.holder.Store(nil); a.structure.DoneChanging() }, nil
}

// AddValues has the values, alone or shared, for the holder of the structure.
func (a *Access) AddValues(ctx context.Context, change bool) (done func(), err error) {
	if err := a.values.Enter(ctx, change); err != nil {
		return nil, ofState(err)
	}
	h := a.holder.Load()
	a.holder.Store(&holder{h.goroutine, true})
	return func() { a.holder.Store(h); a.values.Leave(change) }, nil
}

// ChangeAll has all of the state alone. Of the steps that were begun it does not wait for the last.
func (a *Access) ChangeAll(ctx context.Context) (done func(), err error) {
	if err := a.BeforeRead(); err != nil {
		return nil, err
	}
	doneStructure, err := a.HoldStructure(ctx)
	if err != nil {
		return nil, err
	}
	doneValues, err := a.AddValues(ctx, true)
	if err != nil {
		doneStructure()
		return nil, err
	}
	return func() { doneValues(); doneStructure() }, nil
}

// PeekValues shares the values with those who read them, for a method that has no error to give and asks for what is
// not gone when the state is closed: nobody changes it then. The function of a step, which may be in already, can ask.
func (a *Access) PeekValues() (done func()) {
	if h := a.within(); h != nil && h.values {
		return func() {}
	}
	switch err := a.values.Read(context.Background()); {
	case err == nil:
		return a.values.DoneReading
	case errors.Is(err, gate.ErrClosed):
		_ = a.values.Close(nil) // waits
	}
	return func() {}
}

// PeekAll is PeekValues with the structure.
func (a *Access) PeekAll() (done func()) {
	if a.within() != nil {
		return a.PeekValues()
	}
	if a.structure.Change(context.Background()) != nil { // closed
		_ = a.structure.Close(nil) // waits
		return a.PeekValues()
	}
	doneValues := a.PeekValues()
	return func() { doneValues(); a.structure.DoneChanging() }
}

// ChangeValues has the values alone, and not the structure, until LeaveValues.
func (a *Access) ChangeValues(ctx context.Context) error {
	if err := a.BeforeRead(); err != nil {
		return err
	}
	return a.EnterValues(ctx, true)
}

// EnterValues has the values, alone or shared, for the start of a run, until LeaveValues.
func (a *Access) EnterValues(ctx context.Context, change bool) error {
	return ofState(a.values.Enter(ctx, change))
}

// LeaveValues ends EnterValues and ChangeValues.
func (a *Access) LeaveValues(change bool) { a.values.Leave(change) }

// Change has all of the state alone, when the steps that were begun are over.
func (s *Store) Change(ctx context.Context) (done func(), err error) {
	if done, err = s.ChangeAll(ctx); err != nil {
		return nil, err
	}
	if err := s.Last.Settled(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// Read shares the values with others who read them, when the steps that were begun are over.
func (s *Store) Read(ctx context.Context) (done func(), err error) {
	if err := s.BeforeRead(); err != nil {
		return nil, err
	}
	if err := s.Access.values.Read(ctx); err != nil {
		return nil, ofState(err)
	}
	if err := s.Last.Settled(); err != nil {
		s.Access.values.DoneReading()
		return nil, err
	}
	return s.Access.values.DoneReading, nil
}

// ReadAll is Read with the structure.
func (s *Store) ReadAll(ctx context.Context) (done func(), err error) {
	if err := s.BeforeRead(); err != nil {
		return nil, err
	}
	doneStructure, err := s.HoldStructure(ctx)
	if err != nil {
		return nil, err
	}
	doneValues, err := s.AddValues(ctx, false)
	if err != nil {
		doneStructure()
		return nil, err
	}
	done = func() { doneValues(); doneStructure() }
	if err := s.Last.Settled(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// ofState says that the error of a gate is the state's.
func ofState(err error) error {
	if errors.Is(err, gate.ErrClosed) {
		return fmt.Errorf("the state: %w", err)
	}
	return err
}
