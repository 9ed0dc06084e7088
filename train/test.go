package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// Test measures a state on data of its own: in a [Loop] at the end of each epoch, by itself with Run, or on any
// schedule with On. In a turn, BatchBegin comes first, then Step, AfterStep, BatchEnd, and Tasks.
type Test[S, B any] struct {
	// Name is put behind the names of what is logged, where the test is part of a loop: accuracy_test; with Prefix it
	// stands before them: test_accuracy. None means "test".
	Name   string
	Prefix bool
	Step   loop.Stepper[S, B]
	// Data is read from its beginning in each test. A test without a batch is an error.
	Data loop.Source[B]
	// Reset clears what the state sums up, before the first step. With nil, a test in a [Loop] takes that of the loop.
	Reset func(ctx context.Context, state S) (S, error)
	// Aggregate says how one value is made of those of all batches.
	Aggregate loop.Aggregations
	// KeepState makes the state that a test ends with the loop's; else it is dropped, so that steps of a test do not
	// count as steps of training. (A state that changes in place is what its steps made of it, dropped or not.)
	KeepState bool
	Hooks     []TestHooks[S, B]
	Tasks     []loop.Task[S, B]
	// Options are those of each run of the test.
	Options []loop.Option

	err error // found by TestOf
}

// Tested is how a test ended.
type Tested[S any] struct {
	// Result has the state that the test ended with, and a history of one row a batch.
	loop.Result[S]
	// Logs has one value of each name, made of those of all batches. Empty beside an error.
	Logs loop.Logs
}

// Run tests a state once. The names of what was logged stay as they are.
func (t Test[S, B]) Run(ctx context.Context, state S, options ...loop.Option) (tested Tested[S], err error) {
	e, err := t.Evaluation()
	if err != nil {
		tested.Result, err = refused(state, fmt.Errorf("%s: %w", e.Name, err))
		return tested, err
	}
	e.Name = ""
	tested.Result, tested.Logs, err = e.Run(ctx, state, options...)
	return tested, err
}

// On makes a task of the test, for other schedules than the end of epochs: for Tasks, and for a [loop.Loop]. What is
// wrong with the test is an error before the first turn of the outer loop.
func (t Test[S, B]) On(when loop.Schedule) loop.Task[S, B] {
	e, err := t.evaluation()
	return e.On(when).WithErr(err)
}

// Evaluation is the test as a part of a loop, for tasks that do more with its result than [Test.On]. The error tells
// what is wrong with the test.
func (t Test[S, B]) Evaluation() (loop.Evaluation[S, B], error) {
	return t.evaluation()
}

// evaluation is the test as a part of a loop. The error is what Err of the evaluation does not find.
func (t Test[S, B]) evaluation() (loop.Evaluation[S, B], error) {
	e := loop.Evaluation[S, B]{Name: cmp.Or(t.Name, "test"), Prefix: t.Prefix, Aggregate: t.Aggregate,
		KeepState: t.KeepState, Options: t.Options, Data: t.Data}
	hooks, err := named(t.Hooks, TestHooks[S, B].all)
	err = errors.Join(t.err, err)
	if t.Step == nil {
		noStep := errors.New("no test step: set Step, or use TestOf with a state that has a method TestStep")
		return e, errors.Join(err, noStep)
	}
	begin := resets(loop.AtStart, t.Reset, hooks)
	e.Loop = loop.New(around("test", hooks, begin, loop.On(loop.EachStep, t.Step), nil, t.Tasks)...)
	return e, err
}

