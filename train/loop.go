package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// Loop trains: it makes one step per batch, and resets and tests at the end of each epoch. Only Step is needed. It is a
// value and keeps nothing of a run, so it can run any number of times, and does not change its fields.
//
// In a turn this is the order of what is due; each hook is called for all of Hooks, in their order:
//
//  1. Hooks.BatchBegin
//  2. Step, then Hooks.AfterStep
//  3. at the end of an epoch: Reset, Tests, Reset again if there was a test, then Hooks.EpochEnd
//  4. Hooks.BatchEnd
//  5. Tasks
type Loop[S, B any] struct {
	// Step is the training step. A [loop.BlockStepper] makes several at once as long as no hook or task is due in each
	// turn.
	Step loop.Stepper[S, B]
	// Reset clears what the state sums up over an epoch, as mean metrics do. It runs after the last step of an epoch
	// has logged, and within each test before its first batch. It also runs after the tests: a state that changes in
	// place has the sums of the test in it then, and the next epoch has to start clean.
	Reset func(ctx context.Context, state S) (S, error)
	// Epoch is the length of an epoch: [loop.Steps], [loop.Samples] or [loop.Time]. An epoch that the end of the run
	// cuts short has no end of its own. With nil the whole run is one epoch, which ends once, after the last turn.
	Epoch loop.Period
	// Tests run at the end of each epoch, in this order. What they log becomes entries of the turn: loss_test.
	Tests []Test[S, B]
	// TestAtStart runs the tests also before the first step.
	TestAtStart bool
	Hooks       []Hooks[S, B]
	// Tasks are further tasks, on schedules of their own.
	Tasks []loop.Task[S, B]

	err error // found by Of
}

// Run trains until the data ends, [loop.Until] is reached, something asks to stop, or something fails: all as for
// [loop.Loop.Run]. A context that is cancelled during a test ends the whole run.
func (l Loop[S, B]) Run(ctx context.Context, state S, data loop.Source[B], options ...loop.Option) (loop.Result[S], error) {
	tasks, err := l.tasks()
	if err != nil {
		return refused(state, err)
	}
	return loop.New(tasks...).Run(ctx, state, data, options...)
}

// Plan says what is due when, and what is wrong with the loop, before it runs; see [loop.Loop.Plan].
func (l Loop[S, B]) Plan(options ...loop.Option) (loop.Plan, error) {
	tasks, err := l.tasks()
	if err != nil {
		return loop.Plan{}, fmt.Errorf("train: %w", err)
	}
	return loop.New(tasks...).Plan(options...)
}

// refused is the result of a run that was not started.
func refused[S any](state S, err error) (loop.Result[S], error) {
	return loop.Result[S]{State: state, History: &loop.History{}, Reason: loop.Failed}, fmt.Errorf("train: %w", err)
}

func (l Loop[S, B]) tasks() ([]loop.Task[S, B], error) {
	hooks, err := named(l.Hooks, Hooks[S, B].all)
	err = errors.Join(l.err, err)
	if l.Step == nil {
		err = errors.Join(err, errors.New("no training step: set Step, or use Of with a state that has a method TrainStep"))
	}
	if l.TestAtStart && len(l.Tests) == 0 {
		err = errors.Join(err, errors.New("TestAtStart is set, but there are no Tests"))
	}
	epoch := loop.AtEnd
	if l.Epoch != nil {
		epoch = loop.Every(l.Epoch)
	}
	if epochErr := epoch.Err(); epochErr != nil {
		err = errors.Join(err, fmt.Errorf("epoch: %w", epochErr))
	}
	testing := epoch
	if l.TestAtStart {
		testing = epoch.AndAtStart()
	}
	epochEnd, names := resets(epoch, l.Reset, hooks), map[string]bool{}
	for _, t := range l.Tests {
		if t.Reset == nil {
			t.Reset = l.Reset
		}
		e, testErr := t.evaluation()
		if testErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", e.Name, testErr))
		}
		if names[e.Name] {
			err = errors.Join(err, fmt.Errorf("two tests have the name %q: one would hide the other's logs", e.Name))
		}
		names[e.Name] = true
		epochEnd = append(epochEnd, e.On(testing))
	}
	if err != nil {
		return nil, err
	}
	if len(l.Tests) > 0 {
		epochEnd = append(epochEnd, resets(testing, l.Reset, hooks)...)
	}
	ends := call(epoch, "epoch end", hooks, func(h Hooks[S, B]) Hook[S, B] { return h.EpochEnd })
	epochEnd = append(epochEnd, ends...)
	return around("train", hooks, nil, loop.On(loop.EachStep, l.Step), epochEnd, l.Tasks), nil
}
