package managed

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
)

type evaluating struct {
	step *Stepper
	view *View
}

// BeginEvaluation has the step's metrics on this state start from zero until end; then earlier metrics continue. Loops
// call it. Evaluations of one step on one state must not overlap; [State.View] allows that.
//
// It separates metrics of [Builder.Track], [Builder.Mean] and [RunningAverages]. Other changes stay in the state.
func (s *Stepper) BeginEvaluation(ctx context.Context, state *State) (end func(context.Context) error, err error) {
	if err = s.takes(state); err == nil {
		err = state.values.ChangeValues(ctx)
	}
	if err != nil {
		return nil, s.failed(fmt.Errorf("begin an evaluation: %w", err))
	}
	defer state.values.LeaveValues(true)
	e := evaluating{s, &View{of: state, on: state.values.Strategy(), moves: state.values.Moves(), live: true, metrics: map[gathered]compute.Buffer{}}}
	state.evaluations = append(state.evaluations, e)
	return func(ctx context.Context) error {
		if err := e.end(ctx); err != nil {
			return s.failed(fmt.Errorf("end of an evaluation: %w", err))
		}
		return nil
	}, nil
}

func (e evaluating) end(ctx context.Context) error {
	state := e.view.of
	if err := state.values.NotWithin(); err != nil {
		return err
	}
	if state.values.EnterValues(context.WithoutCancel(ctx), true) != nil {
		return nil
	}
	defer state.values.LeaveValues(true)
	state.evaluations = slices.DeleteFunc(state.evaluations, func(o evaluating) bool { return o == e })
	err := state.values.Last.Follow(nil)
	if state.values.Last.Lost() != nil { // unknown which buffers exist
		return err
	}
	if freeErr := e.view.forget(); err == nil {
		err = freeErr
	}
	return err
}
