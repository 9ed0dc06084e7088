package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Test measures a state on data of its own: in a [Loop] at the end of each epoch, by itself with Run, or on any schedule
// with On. In a turn, BatchBegin comes first, then Step, AfterStep, BatchEnd, and Tasks.
type Test[S, B any] struct {
	// Name is put behind the names of what is logged, where the test is part of a loop: accuracy_test. None means "test".
	Name string
	Step loop.Stepper[S, B]
	// Data is called anew for each test, which begins with its first batch. A test of no batch is an error: the data is
	// mostly an iterator then that an earlier test has used up.
	Data func(ctx context.Context) (loop.Data[B], error)
	// Length ends a test before its data does; nil takes all.
	Length loop.Period
	// Reset clears what the state sums up, before the first step. With nil, a test in a [Loop] takes that of the loop.
	Reset func(ctx context.Context, state S) (S, error)
	// Aggregate says how one value is made of those of all batches.
	Aggregate loop.Aggregations
	// KeepState makes the state that a test ends with the loop's. Else it is dropped, as in Ciclo; Jaxloop keeps it, which
	// makes the steps of a test count as steps of training. (A state that changes in place is what its steps made of it.)
	KeepState bool
	Hooks     TestHooks[S, B]
	// Callbacks are objects that have hooks of a test as methods; those of the loop come after them.
	Callbacks []any
	Tasks     []loop.Task[S, B]
	// Options are those of each run of the test.
	Options []loop.Option

	own    part[S, B]   // the state's
	ofLoop []part[S, B] // the callbacks of the loop that the test is part of
	err    error
}

// Tested is how a test ended.
type Tested[S any] struct {
	// Result has the state that the test ended with, and a history of one row a batch.
	loop.Result[S]
	// Logs has one value of each name, made of those of all batches. Empty beside an error.
	Logs loop.Logs
}

// Run tests a state once. The names of what was logged stay as they are.
func (t Test[S, B]) Run(ctx context.Context, state S, options ...loop.Option) (Tested[S], error) {
	tasks, err := t.tasks()
	e := t.evaluation(tasks)
	if err == nil {
		_, err = loop.New(e.On(loop.AtEnd)).Plan() // a dry run finds what is wrong with the settings
	}
	var data loop.Data[B]
	if err == nil {
		if data, err = e.Data(ctx); err != nil {
			err = fmt.Errorf("data: %w", err)
		}
	}
	all := slices.Clone(e.Options)
	if e.Length != nil {
		all = append(all, loop.Until(e.Length))
	}
	result, err := run(ctx, tasks, err, state, data, append(all, options...))
	if err != nil {
		return Tested[S]{Result: result}, err
	}
	return Tested[S]{result, result.History.Aggregate(t.Aggregate)}, nil
}

// On makes a task of the test, for loops of one's own and for Tasks: a test that runs on another schedule than the end of
// epochs.
func (t Test[S, B]) On(when loop.Schedule) loop.Task[S, B] {
	tasks, err := t.tasks()
	e := t.evaluation(tasks)
	if err != nil {
		return loop.OnTurn(when, func(context.Context, *loop.Turn[S, B]) error { return err }).Named("evaluation " + e.Name)
	}
	return e.On(when)
}

func (t Test[S, B]) evaluation(tasks []loop.Task[S, B]) loop.Evaluation[S, B] {
	e := loop.Evaluation[S, B]{Name: cmp.Or(t.Name, "test"), Loop: loop.New(tasks...), Length: t.Length,
		Aggregate: t.Aggregate, KeepState: t.KeepState, Options: t.Options}
	if t.Data != nil {
		e.Data = func(ctx context.Context) (loop.Data[B], error) {
			data, err := t.Data(ctx)
			if err != nil || data == nil {
				return nil, err
			}
			return notEmpty(data), nil
		}
	}
	return e
}

func (t Test[S, B]) tasks() ([]loop.Task[S, B], error) {
	parts := []part[S, B]{t.own, {test: t.Hooks}}
	err := t.err
	if t.Step == nil {
		err = errors.Join(err, errors.New("no test step: set Step, or use TestOf with a state that has a method TestStep"))
	}
	for i, c := range t.Callbacks {
		p, found, callbackErr := partOf[S, B](c)
		if callbackErr == nil && found.test == 0 {
			callbackErr = errNoHook("a test", c)
		}
		if callbackErr != nil {
			err = errors.Join(err, fmt.Errorf("callback %d: %w", i+1, callbackErr))
		}
		parts = append(parts, p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(t.Name, "test"), err)
	}
	parts = append(parts, t.ofLoop...)

	var list tasks[S, B]
	list.hooks(loop.AtStart, "test begin", parts, func(p part[S, B]) Hook[S, B] { return p.test.Begin })
	list.reset(loop.AtStart, t.Reset, parts, func(p part[S, B]) Hook[S, B] { return p.test.AfterReset })
	list.hooks(loop.EachStep, "test batch begin", parts, func(p part[S, B]) Hook[S, B] { return p.test.BatchBegin })
	list.add(loop.On(loop.EachStep, t.Step).Named("test step"))
	list.hooks(loop.EachStep, "after test step", parts, func(p part[S, B]) Hook[S, B] { return p.test.AfterStep })
	list.hooks(loop.EachStep, "test batch end", parts, func(p part[S, B]) Hook[S, B] { return p.test.BatchEnd })
	list.add(t.Tasks...)
	list.hooks(loop.AtEnd, "test end", parts, func(p part[S, B]) Hook[S, B] { return p.test.End })
	return list, nil
}

// notEmpty is data that ends in an error if it has no batch.
func notEmpty[B any](data loop.Data[B]) loop.Data[B] {
	return func(yield func(B, error) bool) {
		empty := true
		for batch, err := range data {
			empty = false
			if !yield(batch, err) {
				return
			}
		}
		if empty {
			var none B
			yield(none, errors.New("no batch to test on: Data is called for each test, and must begin anew each time"))
		}
	}
}
