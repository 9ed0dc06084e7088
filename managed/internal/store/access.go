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

// Access controls by two gates who may use a state.
//
//   - values guards the buffers and the settings' record of the last batch. Readers share it; a change is alone.
//   - structure has one holder: a build of a step, or a change of what steps are built from. It guards the
//     definition, the programs, the resident sets, and the settings of optimizers.
//
// Data that both use (the list of variables, the strategy, the given values, the saved origins) changes only with
// both held. Structure is entered first. Pins and the last run have their own locks.
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
//	a training step or block: also the flag training, for all of it
//
// All calls but the looks, Stepper.Await and the end of an evaluation first run the functions of OnRead, without a
// gate.
//
// The holder of structure is recorded by goroutine: calls of the caller's functions for the same state return
// xla.ErrBusy.
type Access struct {
	structure, values gate.Gate
	holder            atomic.Pointer[holder] // nil during looks
	readers           readers
}

type holder struct {
	goroutine string
	values    bool // also holds the values
}

func goroutine() string {
	var text [64]byte // "goroutine 18 [running]: …"
	name, _, _ := strings.Cut(string(text[:runtime.Stack(text[:], false)]), " [")
	return name
}

func (a *Access) within() *holder {
	if h := a.holder.Load(); h != nil && h.goroutine == goroutine() {
		return h
	}
	return nil
}

// NotWithin refuses callers that would wait for themselves or see half a change.
func (a *Access) NotWithin() error {
	if a.within() != nil {
		return fmt.Errorf("the state is %w: the function of a step that is being built cannot wait for the state: read the state before the step", xla.ErrBusy)
	}
	return nil
}

// HoldStructure refuses its holder.
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

func (a *Access) AddValues(ctx context.Context, change bool) (done func(), err error) {
	if err := a.values.Enter(ctx, change); err != nil {
		return nil, ofState(err)
	}
	h := a.holder.Load()
	a.holder.Store(&holder{h.goroutine, true})
	return func() { a.holder.Store(h); a.values.Leave(change) }, nil
}

// ChangeAll does not wait for the last run.
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

// PeekValues, for methods without an error result, also works after Close and within a build function.
func (a *Access) PeekValues() (done func()) {
	if h := a.within(); h != nil && h.values {
		return func() {}
	}
	switch err := a.values.Read(context.Background()); {
	case err == nil:
		return a.values.DoneReading
	case errors.Is(err, gate.ErrClosed):
		_ = a.values.Close(nil)
	}
	return func() {}
}

func (a *Access) PeekAll() (done func()) {
	if a.within() != nil {
		return a.PeekValues()
	}
	if a.structure.Change(context.Background()) != nil { // closed
		_ = a.structure.Close(nil)
		return a.PeekValues()
	}
	doneValues := a.PeekValues()
	return func() { doneValues(); a.structure.DoneChanging() }
}

func (a *Access) ChangeValues(ctx context.Context) error {
	if err := a.BeforeRead(); err != nil {
		return err
	}
	return a.EnterValues(ctx, true)
}

func (a *Access) EnterValues(ctx context.Context, change bool) error {
	return ofState(a.values.Enter(ctx, change))
}

func (a *Access) LeaveValues(change bool) { a.values.Leave(change) }

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

func ofState(err error) error {
	if errors.Is(err, gate.ErrClosed) {
		return fmt.Errorf("the state: %w", err)
	}
	return err
}
