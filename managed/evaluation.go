package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/strategies"
)

// evaluating is a step that gathers its metrics apart, until the evaluation ends.
type evaluating struct {
	step *Stepper
	view *View
}

// BeginEvaluation has the step gather its metrics on this state apart, from nothing, until end: a loop's evaluation
// calls it. What was gathered before stays as it is, and goes on after end: neither two evaluations nor an evaluation
// and the training mix, also if they share a step. Evaluations of one step on one state are not to be made at the same
// time; [State.View] is for that.
//
// Metrics are what [Builder.Track] and [Builder.Mean] gather, the means of losses by [RunningAverages] among them:
// those report a mean since the last reset. The averages of batch normalisation, the count of [Builder.Samples], random
// numbers and all else that a step changes belong to the model, and change in the state.
//
// Nothing is copied off the device. The first step of the evaluation puts an empty value there for each accumulator of
// the metrics.
func (s *Stepper) BeginEvaluation(ctx context.Context, state *State) (end func(context.Context) error, err error) {
	err = errors.New("the state is nil: make one with New")
	if state != nil {
		err = state.access.enterAlone(ctx)
	}
	if err != nil {
		return nil, s.failed(fmt.Errorf("begin an evaluation: %w", err))
	}
	defer state.access.values.DoneChanging()
	on := &state.storage
	e := evaluating{s, &View{of: state, on: on.strategy, moves: on.moves, live: true, metrics: map[int]strategies.Buffer{}}}
	on.evaluations = append(on.evaluations, e)
	return func(ctx context.Context) error {
		if err := e.end(ctx); err != nil {
			return s.failed(fmt.Errorf("end of an evaluation: %w", err))
		}
		return nil
	}, nil
}

// enterAlone is for what changes values and builds nothing.
func (a *access) enterAlone(ctx context.Context) error {
	if err := a.beforeRead(); err != nil {
		return err
	}
	return ofState(a.values.Change(ctx))
}

// end gives up what the evaluation has gathered; what it logged stays readable. A second end does nothing.
func (e evaluating) end(ctx context.Context) error {
	state := e.view.of
	if err := state.access.notWithin(); err != nil {
		return err
	}
	if state.access.values.Change(context.WithoutCancel(ctx)) != nil { // closed, and all is freed
		return nil
	}
	defer state.access.values.DoneChanging()
	on := &state.storage
	on.evaluations = slices.DeleteFunc(on.evaluations, func(o evaluating) bool { return o == e })
	err := on.last.follow(nil)
	if on.last.lost != nil { // of lost values nobody can tell what is left to free
		return err
	}
	if freeErr := e.view.forget(); err == nil {
		err = freeErr
	}
	return err
}

// viewOf is what a step runs on that is made on the state itself: that of its evaluation, nil without one.
func (s *storage) viewOf(step *Stepper) *View {
	for _, e := range slices.Backward(s.evaluations) {
		if e.step == step {
			return e.view
		}
	}
	return nil
}
