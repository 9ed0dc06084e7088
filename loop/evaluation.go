package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Evaluation is a loop within a loop, on data of its own. What it logs becomes one entry a name in the turn of the outer
// loop, with "_" and the evaluation's name behind: accuracy_test. Any number of them can stand in a loop:
//
//	test := loop.Evaluation[State, Batch]{Name: "test", Loop: testing, Data: testData}
//	training := loop.New(loop.On(loop.EachStep, trainStep), test.On(loop.Every(loop.Steps(500)).AndAtStart()))
type Evaluation[S, B any] struct {
	// Name is put behind the names of the entries; with none they keep their own.
	Name string
	Loop Loop[S, B]
	// Data is called anew for each evaluation.
	Data func(context.Context) (Data[B], error)
	// Length ends an evaluation before its data does; nil takes all.
	Length    Period
	Aggregate Aggregations
	// KeepState makes the state that the inner loop ends with the outer one's; else it is dropped. (A state that changes in
	// place is then what its steps made of it, dropped or not.)
	KeepState bool
	// Options are those of the inner run.
	Options []Option
}

// On makes a task of the evaluation.
func (e Evaluation[S, B]) On(when Schedule) Task[S, B] {
	t := OnFunc(when, func(ctx context.Context, state S, _ B) (S, Logs, error) { return e.Run(ctx, state) })
	t.err = e.check()
	return t.Named(e.label())
}

// Run evaluates once. The error of a cancelled evaluation wraps the cause of the context, so that an outer loop
// ends with it.
func (e Evaluation[S, B]) Run(ctx context.Context, state S) (S, Logs, error) {
	if err := e.check(); err != nil {
		return state, Logs{}, err
	}
	data, err := e.Data(ctx)
	if err != nil {
		return state, Logs{}, fmt.Errorf("data: %w", err)
	}
	options := slices.Clone(e.Options)
	if e.Length != nil {
		options = append(options, Until(e.Length))
	}
	result, err := e.Loop.Run(ctx, state, data, options...)
	if e.KeepState {
		state = result.State
	}
	if err != nil {
		return state, Logs{}, err
	}
	return state, result.History.Aggregate(e.Aggregate).Suffix(e.Name), nil
}

func (e Evaluation[S, B]) check() error {
	err := e.Aggregate.check()
	if e.Data == nil {
		err = errors.Join(err, errors.New("no data given"))
	}
	if e.Length != nil && e.Length.length() <= 0 {
		err = errors.Join(err, fmt.Errorf("length: period must be positive, got %s", e.Length))
	}
	return err
}

func (e Evaluation[S, B]) label() string {
	if e.Name == "" {
		return "evaluation"
	}
	return "evaluation " + e.Name
}
