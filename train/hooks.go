package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Hooks are functions called at fixed places of a loop. Not all may be nil.
//
// A hook may change the state and logs of the iteration. After an error the state remains as before the call and the
// run fails; with [loop.ErrStop] the change is kept and the run ends after the iteration. Begin and End are not in an
// iteration: their batch is the first or last, their logs a separate row.
type Hooks[S, B any] struct {
	// Name appears in errors: "epoch end (NAME)". The default is the number in a list of several.
	Name string
	// Begin is called before the first step, with the first batch, End after the last step. BatchBegin comes before
	// everything else in an iteration, BatchEnd after everything but Tasks, AfterStep after the step.
	Begin, BatchBegin, AfterStep, BatchEnd, End func(ctx context.Context, turn *loop.Turn[S, B]) error
	// AfterReset is called after a Reset, or in its place: at an epoch's end before the tests, and before a test's first
	// step, but not in a prediction.
	AfterReset func(ctx context.Context, turn *loop.Turn[S, B]) error
	// EpochEnd is called at an epoch's end after the tests, only in a [Loop].
	EpochEnd func(ctx context.Context, turn *loop.Turn[S, B]) error
}

type hook[S, B any] func(ctx context.Context, turn *loop.Turn[S, B]) error

// Method returns a hook that calls a method of the state: train.Method((*Model).EpochEnd).
func Method[S, B any](method func(state S, ctx context.Context, turn *loop.Turn[S, B]) error) func(context.Context, *loop.Turn[S, B]) error {
	if method == nil {
		return nil
	}
	return func(ctx context.Context, turn *loop.Turn[S, B]) error { return method(turn.State, ctx, turn) }
}

// Test makes Ciclo's test_loop: an evaluation with hooks. An iteration calls BatchBegin, the step, AfterStep and
// BatchEnd. [loop.Evaluation].Reset comes before Begin.
func Test[S, B any](name string, step loop.Stepper[S, B], data loop.Source[B], hooks ...Hooks[S, B]) loop.Evaluation[S, B] {
	return test(name, loop.On(loop.EachStep, step), data, hooks)
}

func test[S, B any](name string, step loop.Task[S, B], data loop.Source[B], hooks []Hooks[S, B]) loop.Evaluation[S, B] {
	hooks, err := named("test", hooks)
	afterReset := call(loop.AtStart, "after reset", hooks, func(h Hooks[S, B]) hook[S, B] { return h.AfterReset })
	tasks := around("test", hooks, afterReset, step.WithErr(err), nil, nil)
	return loop.Evaluation[S, B]{Name: name, Loop: loop.New(tasks...), Data: data}
}

func named[S, B any](kind string, list []Hooks[S, B]) (hooks []Hooks[S, B], err error) {
	for i, h := range list {
		switch {
		case h.EpochEnd != nil && kind != "train":
			err = errors.Join(err, fmt.Errorf("hooks %d: EpochEnd is set, but a %s loop has no epochs", i+1, kind))
		case h.AfterReset != nil && kind == "predict":
			err = errors.Join(err, fmt.Errorf("hooks %d: AfterReset is set, but a predict loop has no reset", i+1))
		case h.Begin == nil && h.BatchBegin == nil && h.AfterStep == nil && h.AfterReset == nil && h.EpochEnd == nil &&
			h.BatchEnd == nil && h.End == nil:
			err = errors.Join(err, fmt.Errorf("hooks %d: none of them is set", i+1))
		}
		if h.Name == "" && len(list) > 1 {
			h.Name = fmt.Sprintf("hooks %d", i+1)
		}
		hooks = append(hooks, h)
	}
	return hooks, err
}

func around[S, B any](kind string, hooks []Hooks[S, B], begin []loop.Task[S, B], step loop.Task[S, B],
	epoch, last []loop.Task[S, B]) []loop.Task[S, B] {
	return slices.Concat(
		call(loop.AtStart, kind+" begin", hooks, func(h Hooks[S, B]) hook[S, B] { return h.Begin }),
		begin,
		call(loop.EachStep, kind+" batch begin", hooks, func(h Hooks[S, B]) hook[S, B] { return h.BatchBegin }),
		[]loop.Task[S, B]{step.Named(kind + " step")},
		call(loop.EachStep, "after "+kind+" step", hooks, func(h Hooks[S, B]) hook[S, B] { return h.AfterStep }),
		epoch,
		call(loop.EachStep, kind+" batch end", hooks, func(h Hooks[S, B]) hook[S, B] { return h.BatchEnd }),
		last,
		call(loop.AtEnd, kind+" end", hooks, func(h Hooks[S, B]) hook[S, B] { return h.End }),
	)
}

func call[S, B any](when loop.Schedule, name string, hooks []Hooks[S, B],
	pick func(Hooks[S, B]) hook[S, B]) (tasks []loop.Task[S, B]) {
	for _, h := range hooks {
		do, label := pick(h), name
		if do == nil {
			continue
		}
		if h.Name != "" {
			label += " (" + h.Name + ")"
		}
		tasks = append(tasks, loop.OnTurn(when, func(ctx context.Context, turn *loop.Turn[S, B]) error {
			before := turn.State
			err := do(ctx, turn)
			if err != nil && !errors.Is(err, loop.ErrStop) {
				turn.State = before
			}
			return err
		}).Named(label))
	}
	return tasks
}
