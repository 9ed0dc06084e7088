package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// Loop trains: it makes a step a batch, and resets and tests at the end of each epoch. Only Step is needed. It is a
// value and keeps nothing of a run, so it can run any number of times; what it is given is never changed.
//
// In a turn this is the order of what is due; for one hook, that of the state comes first (see [Of]), then that of
// Hooks, then those of Callbacks:
//
//  1. Hooks.BatchBegin
//  2. Step, then Hooks.AfterStep
//  3. at the end of an epoch: Reset, Tests, Reset again if there was a test, then Hooks.EpochEnd
//  4. Hooks.BatchEnd
//  5. Tasks
type Loop[S, B any] struct {
	// Step is the training step. A [loop.BlockStepper] makes several at once as long as no hook or task is due in each turn.
	Step loop.Stepper[S, B]
	// Reset clears what the state sums up over an epoch, as mean metrics do. It runs after the last step of an epoch has
	// logged, and within each test before its first batch. It also runs after the tests, where Ciclo does not: a state
	// that changes in place has the sums of the test in it then, and the next epoch has to start clean.
	Reset func(ctx context.Context, state S) (S, error)
	// Epoch is the length of an epoch: [loop.Steps], [loop.Samples] or [loop.Time]. An epoch that the end of the run cuts
	// short has no end of its own. With nil the whole run is one epoch, and its end comes once, after the last turn:
	// Ciclo then does not test at all, and says nothing.
	Epoch loop.Period
	// Tests run at the end of each epoch, in this order. What they log becomes entries of the turn: loss_test.
	Tests []Test[S, B]
	// TestAtStart runs the tests also before the first step. Ciclo counts before a step, so that its first epoch ends after
	// one batch; here epochs of 3 steps end after 3, 6, 9, and a test of the untrained state is asked for.
	TestAtStart bool
	Hooks       Hooks[S, B]
	// Callbacks are objects that have hooks as methods (see the table of the package): those of training, and those
	// that they have for tests run in Tests. One without any such method is an error; Ciclo passes over it in silence.
	Callbacks []any
	// Tasks are further tasks, on schedules of their own.
	Tasks []loop.Task[S, B]

	own part[S, B] // the state's
	err error
}

// Run trains until the data ends, [loop.Until] is reached, somebody asks to stop, or something fails: all as
// [loop.Loop.Run] has it. A context that is cancelled during a test ends the whole run; in Ciclo it ends the test alone.
func (l Loop[S, B]) Run(ctx context.Context, state S, data loop.Data[B], options ...loop.Option) (loop.Result[S], error) {
	tasks, err := l.tasks()
	return run(ctx, tasks, err, state, data, options)
}

// Plan says what is due when, and what is wrong with the loop, before it runs; see [loop.Loop.Plan].
func (l Loop[S, B]) Plan(options ...loop.Option) (loop.Plan, error) {
	tasks, err := l.tasks()
	if err != nil {
		return loop.Plan{}, fmt.Errorf("train: %w", err)
	}
	return loop.New(tasks...).Plan(options...)
}

// run is what the three loops have in common: err is what was wrong with the tasks.
func run[S, B any](ctx context.Context, tasks []loop.Task[S, B], err error, state S, data loop.Data[B], options []loop.Option) (loop.Result[S], error) {
	if err != nil {
		return failed(state, loop.Elapsed{}), fmt.Errorf("train: %w", err)
	}
	return loop.New(tasks...).Run(ctx, state, data, options...)
}

func (l Loop[S, B]) tasks() ([]loop.Task[S, B], error) {
	parts, tests, err := l.parts()
	err = errors.Join(l.err, err)
	if l.Step == nil {
		err = errors.Join(err, errors.New("no training step: set Step, or use Of with a state that has a method TrainStep"))
	}
	if l.TestAtStart && len(tests) == 0 {
		err = errors.Join(err, errors.New("TestAtStart is set, but there are no Tests"))
	}
	epoch := loop.AtEnd
	if l.Epoch != nil {
		epoch = loop.Every(l.Epoch)
	}
	if epochErr := epoch.Err(); epochErr != nil {
		err = errors.Join(err, fmt.Errorf("epoch: %w", epochErr))
	}
	if err != nil {
		return nil, err
	}
	testing := epoch
	if l.TestAtStart {
		testing = epoch.AndAtStart()
	}

	var list tasks[S, B]
	list.hooks(loop.AtStart, "train begin", parts, func(p part[S, B]) Hook[S, B] { return p.train.Begin })
	list.hooks(loop.EachStep, "train batch begin", parts, func(p part[S, B]) Hook[S, B] { return p.train.BatchBegin })
	list.add(loop.On(loop.EachStep, l.Step).Named("train step"))
	list.hooks(loop.EachStep, "after train step", parts, func(p part[S, B]) Hook[S, B] { return p.train.AfterStep })
	list.reset(epoch, l.Reset, parts, func(p part[S, B]) Hook[S, B] { return p.train.AfterReset })
	for _, t := range tests {
		list.add(t.On(testing))
	}
	if len(tests) > 0 {
		list.reset(testing, l.Reset, parts, func(p part[S, B]) Hook[S, B] { return p.train.AfterReset })
	}
	list.hooks(epoch, "epoch end", parts, func(p part[S, B]) Hook[S, B] { return p.train.EpochEnd })
	list.hooks(loop.EachStep, "train batch end", parts, func(p part[S, B]) Hook[S, B] { return p.train.BatchEnd })
	list.add(l.Tasks...)
	list.hooks(loop.AtEnd, "train end", parts, func(p part[S, B]) Hook[S, B] { return p.train.End })
	return list, nil
}

// parts are the hooks in their order, and the tests with all that they get from the loop.
func (l Loop[S, B]) parts() (parts []part[S, B], tests []Test[S, B], err error) {
	parts = []part[S, B]{l.own, {train: l.Hooks}}
	var ofTests []part[S, B]
	for i, c := range l.Callbacks {
		p, found, callbackErr := partOf[S, B](c)
		switch {
		case callbackErr != nil:
		case found.train == 0 && (found.test == 0 || len(l.Tests) == 0):
			callbackErr = errNoHook("training, nor of a test that this loop has", c)
		}
		if callbackErr != nil {
			err = errors.Join(err, fmt.Errorf("callback %d: %w", i+1, callbackErr))
			continue
		}
		parts, ofTests = append(parts, p), append(ofTests, p)
	}
	names := map[string]bool{}
	for _, t := range l.Tests {
		if t.Name == "" {
			t.Name = "test"
		}
		if names[t.Name] {
			err = errors.Join(err, fmt.Errorf("two tests have the name %q: one would hide the other's logs", t.Name))
		}
		names[t.Name] = true
		if t.Reset == nil {
			t.Reset = l.Reset
		}
		t.ofLoop = ofTests
		if _, testErr := t.tasks(); testErr != nil {
			err = errors.Join(err, testErr)
		}
		tests = append(tests, t)
	}
	return parts, tests, err
}
