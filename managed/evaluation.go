package managed

import (
	"context"
	"errors"
	"fmt"
	"github.com/gomlx/compute"
	"slices"
)

// evaluating is a step in an evaluation, with separate metrics.
type evaluating struct {
	step *Stepper
	view *View
}

// BeginEvaluation has the step accumulate its metrics on this state separately, from zero, until end. A loop's
// evaluation calls it. Earlier metrics are kept and continue after end, so evaluations and the training do not mix,
// even if they share a step. Two evaluations of one step on one state must not run at the same time; use [State.View]
// for that.
//
// Separate are the metrics of [Builder.Track] and [Builder.Mean], including the means of [RunningAverages]. All else
// that a step changes changes in the state: averages of batch normalization, the count of [Builder.Samples], random
// numbers.
//
// Nothing is copied from the device. The first step of the evaluation puts an empty value there for each accumulator.
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

// end frees the evaluation's metrics; logged values stay readable. A second end does nothing.
func (e evaluating) end(ctx context.Context) error {
	state := e.view.of
	if err := state.values.NotWithin(); err != nil {
		return err
	}
	if state.values.EnterValues(context.WithoutCancel(ctx), true) != nil { // closed, and everything is freed
		return nil
	}
	defer state.values.LeaveValues(true)
	state.evaluations = slices.DeleteFunc(state.evaluations, func(o evaluating) bool { return o == e })
	err := state.values.Last.Follow(nil)
	if state.values.Last.Lost() != nil { // after a loss it is unknown which buffers exist
		return err
	}
	if freeErr := e.view.forget(); err == nil {
		err = freeErr
	}
	return err
}

// viewOf returns the view of the step's newest evaluation on this state, or nil.
func (s *State) viewOf(step *Stepper) *View {
	for _, e := range slices.Backward(s.evaluations) {
		if e.step == step {
			return e.view
		}
	}
	return nil
}
