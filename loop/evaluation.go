package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Evaluation is a loop within a loop, on other data. For each name that it logs, the turn of the outer loop gets one
// entry, with "_" and the evaluation's name appended: accuracy_test. A loop may have any number of them:
//
//	test := loop.Evaluation[State, Batch]{Name: "test", Loop: testing, Data: testData}
//	training := loop.New(loop.On(loop.EachStep, trainStep), test.On(loop.Every(loop.Steps(500)).AndAtStart()))
type Evaluation[S, B any] struct {
	// Name is appended to the names of the entries; if it is empty they keep their names. With Prefix it stands before
	// them: test_accuracy.
	Name   string
	Prefix bool
	Loop   Loop[S, B]
	// Data is called for each evaluation.
	Data func(context.Context) (Data[B], error)
	// Length ends an evaluation before its data does; nil takes all.
	Length    Period
	Aggregate Aggregations
	// KeepState makes the state at the end of the inner loop that of the outer one; otherwise it is dropped. (What the
	// inner steps do to a state that changes in place stays in either case.)
	KeepState bool
	// Options are those of the inner run.
	Options []Option
}

// Fixed is the Data of an evaluation, or of a test of package train, on the same batches each time:
//
//	Data: loop.Fixed(test.Batches(64))
//
// The sequence must begin anew each time that it is ranged over, as those of [data.Set] do.
//
// [data.Set]: https://pkg.go.dev/github.com/lazo-ml/lazo/data#Set
func Fixed[B any](data Data[B]) func(context.Context) (Data[B], error) {
	return func(context.Context) (Data[B], error) { return data, nil }
}

// On makes a task of the evaluation. Errors in the inner loop or its options are found before the outer loop runs. An
// entry that the turn has already is an error: give the evaluation another Name.
func (e Evaluation[S, B]) On(when Schedule) Task[S, B] {
	do := func(ctx context.Context, turn *Turn[S, B]) error {
		_, err := e.evaluate(ctx, turn)
		return err
	}
	return Task[S, B]{name: e.label(), when: when, ignoresTime: true, do: do, err: e.Err()}
}

// Run evaluates once, for loops written by hand. The error of a cancelled evaluation wraps the cause of the context. An
// [ErrStop] within ends the evaluation only.
func (e Evaluation[S, B]) Run(ctx context.Context, state S) (S, Logs, error) {
	turn := Turn[S, B]{State: state}
	if err := Shield(func() error { _, err := e.Evaluate(ctx, &turn); return err }); err != nil {
		return state, Logs{}, fmt.Errorf("loop: %s: %w", e.label(), err)
	}
	return turn.State, turn.Logs, nil
}

// Evaluate does in a turn what the task of [Evaluation.On] does, for a task that needs the result of the inner loop:
// its history, what stopped it.
func (e Evaluation[S, B]) Evaluate(ctx context.Context, turn *Turn[S, B]) (Result[S], error) {
	if err := e.Err(); err != nil {
		return Result[S]{}, err
	}
	return e.evaluate(ctx, turn)
}

func (e Evaluation[S, B]) evaluate(ctx context.Context, turn *Turn[S, B]) (Result[S], error) {
	data, err := e.Data(ctx)
	if err != nil {
		return Result[S]{}, nestedError{&runError{"data", err}}
	}
	result, err := e.Loop.Run(ctx, turn.State, data, e.options()...)
	if err != nil {
		return result, nestedError{err}
	}
	rename := Logs.Suffix
	if e.Prefix {
		rename = Logs.Prefix
	}
	logs := rename(result.History.Aggregate(e.Aggregate), e.Name)
	for _, entry := range logs.entries {
		path := entry.Path()
		if _, n := match(turn.Logs.entries, (*Entry).hasPath, path); n > 0 {
			return result, fmt.Errorf("%s is logged in this turn already: give each evaluation a Name of its own", path)
		}
	}
	if e.KeepState {
		turn.State = result.State
	}
	turn.Logs.Merge(logs)
	return result, nil
}

func (e Evaluation[S, B]) options() []Option {
	options := slices.Clone(e.Options)
	if e.Length != nil {
		options = append(options, Until(e.Length))
	}
	return options
}

// Err tells what is wrong with the evaluation, nil if nothing is. Data is not called.
func (e Evaluation[S, B]) Err() error {
	errs := []error{e.Aggregate.Err()}
	if e.Data == nil {
		errs = append(errs, errors.New("no data given"))
	}
	if e.Length != nil && e.Length.Length() <= 0 {
		errs = append(errs, fmt.Errorf("length: period must be positive, got %s", e.Length))
	} else {
		r := &run[S, B]{settings: newSettings(e.options(), nil), tasks: e.Loop.tasks}
		errs = append(errs, r.check(false)) // the data is made for each evaluation
	}
	return errors.Join(errs...)
}

func (e Evaluation[S, B]) label() string {
	if e.Name == "" {
		return "evaluation"
	}
	return "evaluation " + e.Name
}

// nestedError is the error of a loop within a loop. Its text lacks the second "loop: ", and an ErrStop that it wraps (a
// panic with it, data that ended with it) does not stop the outer loop, which would end a failed run without an error.
type nestedError struct{ err error }

func (e nestedError) Error() string        { return point(e.err) }
func (e nestedError) Is(target error) bool { return target != ErrStop && errors.Is(e.err, target) }
func (e nestedError) As(target any) bool   { return errors.As(e.err, target) }
