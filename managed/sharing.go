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
//	a training step or block, beside its gates: the flag training, for all of it
//
// Before all of these but the looks, Stepper.Await and the end of an evaluation, beforeRead calls the functions of
// OnRead, which make the steps that wait; no gate is held then.
//
// Under eager, and while a step is built, the caller's functions run while structure is held: those of steps, and what
// [TrainOnly] and [DrawMissing] are given. The goroutine that holds structure is noted, and what it asks of the same
// state is ErrBusy, whether it would have to wait or not.
type access struct {
	structure, values gate.Gate
	holder            atomic.Pointer[holder] // who holds structure; nil for those who only look
	training          atomic.Bool            // a training step is being made
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
func (a *access) within() *holder {
	if h := a.holder.Load(); h != nil && h.goroutine == goroutine() {
		return h
	}
	return nil
}

// notWithin sends those away who would wait for themselves, or see values in the middle of a change.
func (a *access) notWithin() error {
	if a.within() != nil {
		return fmt.Errorf("the state is %w: the function of a step that is being built cannot wait for the state: ask before the step", ErrBusy)
	}
	return nil
}

// holdStructure has the structure alone, until done. Whoever has it already is sent away.
func (a *access) holdStructure(ctx context.Context) (done func(), err error) {
	if err := a.notWithin(); err != nil {
		return nil, err
	}
	if err := a.structure.Change(ctx); err != nil {
		return nil, ofState(err)
	}
	a.holder.Store(&holder{goroutine: goroutine()})
	return func() { a.holder.Store(nil); a.structure.DoneChanging() }, nil
}

// addValues has the values, alone or shared, for the holder of the structure.
func (a *access) addValues(ctx context.Context, change bool) (done func(), err error) {
	if err := a.values.Enter(ctx, change); err != nil {
		return nil, ofState(err)
	}
	h := a.holder.Load()
	a.holder.Store(&holder{h.goroutine, true})
	return func() { a.holder.Store(h); a.values.Leave(change) }, nil
}

// changeAll has all of the state alone. Of the steps that were begun it does not wait for the last.
func (a *access) changeAll(ctx context.Context) (done func(), err error) {
	if err := a.beforeRead(); err != nil {
		return nil, err
	}
	doneStructure, err := a.holdStructure(ctx)
	if err != nil {
		return nil, err
	}
	doneValues, err := a.addValues(ctx, true)
	if err != nil {
		doneStructure()
		return nil, err
	}
	return func() { doneValues(); doneStructure() }, nil
}

// peekValues shares the values with those who read them, for a method that has no error to give and asks for what is
// not gone when the state is closed: nobody changes it then. The function of a step, which may be in already, can ask.
func (a *access) peekValues() (done func()) {
	if h := a.within(); h != nil && h.values {
		return func() {}
	}
	switch err := a.values.Read(context.Background()); {
	case err == nil:
		return a.values.DoneReading
	case errors.Is(err, ErrClosed):
		_ = a.values.Close(nil) // waits
	}
	return func() {}
}

// peekAll is peekValues with the structure.
func (a *access) peekAll() (done func()) {
	if a.within() != nil {
		return a.peekValues()
	}
	if a.structure.Change(context.Background()) != nil { // closed
		_ = a.structure.Close(nil) // waits
		return a.peekValues()
	}
	doneValues := a.peekValues()
	return func() { doneValues(); a.structure.DoneChanging() }
}

// readValues shares the values with others who read them, when the steps that were begun are over.
func (s *State) readValues(ctx context.Context) (done func(), err error) {
	if err := s.access.beforeRead(); err != nil {
		return nil, err
	}
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
	if err := s.access.beforeRead(); err != nil {
		return nil, err
	}
	doneStructure, err := s.access.holdStructure(ctx)
	if err != nil {
		return nil, err
	}
	doneValues, err := s.access.addValues(ctx, false)
	if err != nil {
		doneStructure()
		return nil, err
	}
	done = func() { doneValues(); doneStructure() }
	if err := s.storage.last.settled(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// ofState says that the error of a gate is the state's.
func ofState(err error) error {
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("the state: %w", err)
	}
	return err
}
