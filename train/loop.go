package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Loop is Ciclo's train_loop: one step per batch, and a reset and tests at each epoch's end. Only Step is required.
//
// An iteration's order:
//
//  1. Hooks.BatchBegin
//  2. Step, then Hooks.AfterStep
//  3. at an epoch's end: Reset, Hooks.AfterReset, Tests, Hooks.EpochEnd
//  4. Hooks.BatchEnd
//  5. Tasks
type Loop[S, B any] struct {
	// Step is the training step. With StepBlock it makes several steps at once while no hook or task is due between.
	Step loop.Stepper[S, B]
	// Reset resets the state's metrics after an epoch's last step has logged. A test has its own Reset.
	Reset func(ctx context.Context, state S) (S, error)
	// Epoch is an epoch's length: [loop.Epochs], [loop.Steps], [loop.Samples] or [loop.Time]. An epoch truncated by the
	// run's end has no end. With nil the whole run is one epoch, which ends after the last iteration.
	Epoch loop.Period
	// Tests run in this order at each epoch's end: [loop.Evaluate], [Test], [TestOf]. Their logs become entries of the
	// iteration: loss_test.
	Tests       []loop.Evaluation[S, B]
	TestAtStart bool
	Hooks       []Hooks[S, B]
	Tasks       []loop.Task[S, B]

	err error // found by Of
}

// Run trains as [loop.Loop.Run] does. A context cancelled during a test ends the whole run.
func (l Loop[S, B]) Run(ctx context.Context, state S, data loop.Source[B], options ...loop.Option) (loop.Result[S], error) {
	return loop.New(l.tasks()...).Run(ctx, state, data, options...)
}

// Plan returns the steps in which tasks and callbacks are due: see [loop.Loop.Plan].
func (l Loop[S, B]) Plan(options ...loop.Option) (loop.Plan, error) {
	return loop.New(l.tasks()...).Plan(options...)
}

func (l Loop[S, B]) tasks() []loop.Task[S, B] {
	hooks, err := named("train", l.Hooks)
	epoch := loop.AtEnd
	if l.Epoch != nil {
		epoch = loop.Every(l.Epoch)
	}
	testing := epoch
	if l.TestAtStart {
		testing = epoch.AndAtStart()
	}
	err = errors.Join(l.err, err, l.checkTests())
	var ends []loop.Task[S, B]
	if l.Reset != nil {
		ends = append(ends, loop.On(epoch, loop.StepFunc(func(ctx context.Context, state S, _ B) (S, loop.Logs, error) {
			state, err := l.Reset(ctx, state)
			return state, loop.Logs{}, err
		})).
			Named("reset"))
	}
	ends = append(ends, call(epoch, "after reset", hooks, func(h Hooks[S, B]) hook[S, B] { return h.AfterReset })...)
	for _, t := range l.Tests {
		ends = append(ends, t.On(testing))
	}
	ends = append(ends, call(epoch, "epoch end", hooks, func(h Hooks[S, B]) hook[S, B] { return h.EpochEnd })...)
	if len(ends) == 0 {
		err = errors.Join(err, epoch.Err())
	}
	return around("train", hooks, nil, loop.On(loop.EachStep, l.Step).WithErr(err), ends, l.Tasks)
}

func (l Loop[S, B]) checkTests() (err error) {
	if l.TestAtStart && len(l.Tests) == 0 {
		err = errors.New("TestAtStart is set, but there are no Tests")
	}
	for i, t := range l.Tests {
		if slices.ContainsFunc(l.Tests[:i], func(o loop.Evaluation[S, B]) bool { return o.Name == t.Name && o.Prefix == t.Prefix }) {
			err = errors.Join(err, fmt.Errorf("two tests have the name %q: give each its own name", t.Name))
		}
	}
	return err
}
