package managed

import (
	"context"
	"errors"
	"fmt"
	"github.com/gomlx/compute"
	"slices"
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
		err = state.values.ChangeValues(ctx)
	}
	if err != nil {
		return nil, s.failed(fmt.Errorf("begin an evaluation: %w", err))
	}
	defer state.values.LeaveValues(true)
	e := evaluating{s, &View{of: state, on: state.values.Strategy(), moves: state.values.Moves(), live: true, metrics: map[int]compute.Buffer{}}}
	state.evaluations = append(state.evaluations, e)
	return func(ctx context.Context) error {
		if err := e.end(ctx); err != nil {
			return s.failed(fmt.Errorf("end of an evaluation: %w", err))
		}
		return nil
	}, nil
}

// end gives up what the evaluation has gathered; what it logged stays readable. A second end does nothing.
func (e evaluating) end(ctx context.Context) error {
	state := e.view.of
	if err := state.values.NotWithin(); err != nil {
		return err
	}
	if state.values.EnterValues(context.WithoutCancel(ctx), true) != nil { // closed, and all is freed
		return nil
	}
	defer state.values.LeaveValues(true)
	state.evaluations = slices.DeleteFunc(state.evaluations, func(o evaluating) bool { return o == e })
	err := state.values.Last.Follow(nil)
	if state.values.Last.Lost() != nil { // of lost values nobody can tell what is left to free
		return err
	}
	if freeErr := e.view.forget(); err == nil {
		err = freeErr
	}
	return err
}

// viewOf is what a step runs on that is made on the state itself: that of its evaluation, nil without one.
func (s *State) viewOf(step *Stepper) *View {
	for _, e := range slices.Backward(s.evaluations) {
		if e.step == step {
			return e.view
		}
	}
	return nil
}
