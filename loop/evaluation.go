package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Evaluation measures a state on its own data with its own metrics ([Evaluate]).
type Evaluation[S, B any] struct {
	// Name is appended to names: accuracy_test.
	Name string
	// Prefix puts the Name first: test_accuracy.
	Prefix bool
	// Aggregate combines the values of all batches.
	Aggregate map[Collection]Aggregation
	// KeepState passes the final state to the outer loop. Changes in place always stay.
	KeepState bool
	// Reset resets a state's metrics before the first batch and, if the state changes in place, after the last.
	// BeginEvaluation ([Stepper]) replaces it.
	Reset func(ctx context.Context, state S) (S, error)
	Loop  Loop[S, B]
	// Data is read from its beginning, with the smaller last batch of a set.
	Data    Source[B]
	Options []Option
}

// Evaluate makes an evaluation of a step on data: one pass, or until the [Until] among the options. The outer iteration
// gets an entry for each logged name, like accuracy_test. Data without a batch is an error. An [ErrStop] ends only the
// evaluation.
func Evaluate[S, B any](name string, step Stepper[S, B], data Source[B], options ...Option) Evaluation[S, B] {
	return Evaluation[S, B]{Name: name, Loop: New(On(EachStep, step)), Data: data, Options: slices.Clone(options)}
}

// On makes a task of the evaluation. An entry that the iteration already has is an error. With [Schedule.AndAtStart] it
// also runs before the first step, except in a continued run.
func (e Evaluation[S, B]) On(when Schedule) Task[S, B] {
	return Task[S, B]{name: e.label(), when: when, ignoresTime: true, evaluates: true, err: e.check(), do: func(ctx context.Context, turn *Turn[S, B]) error {
		result, logs, err := e.run(ctx, turn.State)
		if err != nil {
			return err
		}
		for _, entry := range logs.entries {
			path := entry.Path()
			if slices.ContainsFunc(turn.Logs.entries, func(e Entry) bool { return e.hasPath(path) }) {
				return fmt.Errorf("%s is already logged in this turn: give each evaluation its own name", path)
			}
		}
		if e.KeepState {
			turn.State = result.State
		}
		turn.Logs.Merge(logs)
		return nil
	}}
}

// Run evaluates once. The history has a row per batch, the logs a value per name.
func (e Evaluation[S, B]) Run(ctx context.Context, state S, options ...Option) (result Result[S], logs Logs, err error) {
	e.Options = slices.Concat(e.Options, options)
	if err = e.check(); err == nil {
		err = shield.Run(func() (err error) { result, logs, err = e.run(ctx, state); return err })
	}
	if err != nil {
		if result.History == nil {
			result = Result[S]{State: state, History: &History{}, Reason: Failed}
		}
		return result, Logs{}, fmt.Errorf("loop: %s: %w", e.label(), err)
	}
	return result, logs, nil
}

func (e Evaluation[S, B]) run(ctx context.Context, state S) (result Result[S], logs Logs, err error) {
	if ctx == nil {
		return Result[S]{State: state, History: &History{}, Reason: Failed}, Logs{}, shield.ErrNoContext
	}
	inner := state
	end, err := e.begin(ctx, state)
	if err != nil {
		return result, logs, err
	}
	if e.Reset != nil {
		if inner, err = e.Reset(ctx, state); err != nil {
			return result, logs, errors.Join(fmt.Errorf("reset: %w", err), end(context.WithoutCancel(ctx)))
		}
	}
	result, err = e.Loop.Run(ctx, inner, whole(e.Data), e.Options...)
	if err == nil && result.Reason == DataEnded && result.Elapsed.Steps == 0 {
		err = errNoBatch
	}
	if err != nil {
		err = nestedError{err}
	} else {
		logs = e.named(result.History.Aggregate(e.Aggregate))
	}
	after := context.WithoutCancel(ctx)
	if e.Reset != nil {
		reset, failure := e.Reset(after, result.State)
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("reset: %w", failure))
		} else if e.KeepState {
			result.State = reset
		}
	}
	if !e.KeepState {
		result.State = state
	}
	return result, logs, errors.Join(err, end(after))
}

func (e Evaluation[S, B]) begin(ctx context.Context, state S) (end func(context.Context) error, err error) {
	var ends []func(context.Context) error
	end = func(ctx context.Context) (err error) {
		for _, f := range slices.Backward(ends) {
			err = errors.Join(err, f(ctx))
		}
		return err
	}
	for i := range e.Loop.tasks {
		s := e.Loop.tasks[i].evaluation
		if s == nil {
			continue
		}
		f, err := s.BeginEvaluation(ctx, state)
		if err != nil {
			return end, errors.Join(err, end(context.WithoutCancel(ctx)))
		}
		ends = append(ends, f)
	}
	return end, nil
}

func (e Evaluation[S, B]) named(logs Logs) Logs {
	if e.Prefix {
		return logs.Prefix(e.Name)
	}
	return logs.Suffix(e.Name)
}

var errNoBatch = errors.New("no batch to evaluate on: the data is empty, or an iterator that an earlier evaluation has read to its end")

func (e Evaluation[S, B]) check() error {
	errs := []error{checkAggregations(e.Aggregate)}
	if isNil(e.Data) {
		errs = append(errs, errNoData)
	}
	settings := newSettings(e.Options, nil)
	if p := settings.until; p != nil && p.Length() <= 0 {
		errs = append(errs, fmt.Errorf("until: the length of an evaluation must be positive, got %s", p))
	}
	if !e.KeepState && slices.ContainsFunc(e.Loop.tasks, func(t Task[S, B]) bool { return t.trains }) {
		errs = append(errs, errors.New("its step trains the state, on the data of the evaluation: give it a test step, or set KeepState"))
	}
	r := &run[S, B]{settings: settings, tasks: e.Loop.tasks}
	return errors.Join(append(errs, r.check(false))...)
}

func (e Evaluation[S, B]) label() string {
	if e.Name == "" {
		return "evaluation"
	}
	return "evaluation " + e.Name
}

// nestedError hides the second "loop: ", and a panic's or the data's ErrStop, which would end the failed outer run
// without an error.
type nestedError struct{ err error }

func (e nestedError) Error() string        { return point(e.err) }
func (e nestedError) Is(target error) bool { return target != ErrStop && errors.Is(e.err, target) }
func (e nestedError) As(target any) bool   { return errors.As(e.err, target) }
