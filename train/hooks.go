package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Hook is called at a fixed place of a loop. It may read and change the state and the logs of the turn. If it returns
// an error, the state stays as it was before the call; with [loop.ErrStop] the change is kept, and the run ends after
// the turn. At the begin and the end of a run the turn is not counted, its batch is the first or the last one, and what
// is logged is a row of its own.
type Hook[S, B any] func(ctx context.Context, turn *loop.Turn[S, B]) error

// Method is the hook that calls a method of the turn's state:
//
//	train.Hooks[*Model, Batch]{EpochEnd: train.Method((*Model).EpochEnd)}
func Method[S, B any](method func(state S, ctx context.Context, turn *loop.Turn[S, B]) error) Hook[S, B] {
	if method == nil {
		return nil
	}
	return func(ctx context.Context, turn *loop.Turn[S, B]) error { return method(turn.State, ctx, turn) }
}

// Hooks are called in training. Any of the functions may be nil, but not all.
type Hooks[S, B any] struct {
	// Name stands in errors: "epoch end (NAME)". With none, hooks that are not alone in their list have their number
	// there.
	Name       string
	Begin      Hook[S, B] // before the first step, when the first batch is there
	BatchBegin Hook[S, B]
	AfterStep  Hook[S, B]
	AfterReset Hook[S, B] // after each Reset, and at the same places if the loop has no Reset
	EpochEnd   Hook[S, B]
	BatchEnd   Hook[S, B]
	End        Hook[S, B] // after the last step
}

// TestHooks are called in a test. Any of the functions may be nil, but not all.
type TestHooks[S, B any] struct {
	Name       string     // as that of [Hooks]
	Begin      Hook[S, B] // before Reset and the first step, when the first batch is there
	AfterReset Hook[S, B]
	BatchBegin Hook[S, B]
	AfterStep  Hook[S, B]
	BatchEnd   Hook[S, B]
	End        Hook[S, B] // after the last step
}

// PredictHooks are called in predicting. Any of the functions may be nil, but not all.
type PredictHooks[S, B any] struct {
	Name       string     // as that of [Hooks]
	Begin      Hook[S, B] // before the first step, when the first batch is there
	BatchBegin Hook[S, B]
	AfterStep  Hook[S, B]
	BatchEnd   Hook[S, B]
	End        Hook[S, B] // after the last step
}

func (h Hooks[S, B]) all() Hooks[S, B] { return h }

func (h TestHooks[S, B]) all() Hooks[S, B] {
	return Hooks[S, B]{Name: h.Name, Begin: h.Begin, AfterReset: h.AfterReset, BatchBegin: h.BatchBegin,
		AfterStep: h.AfterStep, BatchEnd: h.BatchEnd, End: h.End}
}

func (h PredictHooks[S, B]) all() Hooks[S, B] {
	return Hooks[S, B]{Name: h.Name, Begin: h.Begin, BatchBegin: h.BatchBegin, AfterStep: h.AfterStep,
		BatchEnd: h.BatchEnd, End: h.End}
}

// named checks hooks and gives each of several a name.
func named[S, B, H any](list []H, all func(H) Hooks[S, B]) (hooks []Hooks[S, B], err error) {
	for i, l := range list {
		h := all(l)
		if h.Begin == nil && h.BatchBegin == nil && h.AfterStep == nil && h.AfterReset == nil && h.EpochEnd == nil &&
			h.BatchEnd == nil && h.End == nil {
			err = errors.Join(err, fmt.Errorf("hooks %d: none of them is set", i+1))
		}
		if h.Name == "" && len(list) > 1 {
			h.Name = fmt.Sprintf("hooks %d", i+1)
		}
		hooks = append(hooks, h)
	}
	return hooks, err
}

// around gives the tasks of a loop in their order: its steps and what else it does, with the hooks between.
func around[S, B any](kind string, hooks []Hooks[S, B], begin []loop.Task[S, B], step loop.Task[S, B],
	epoch, last []loop.Task[S, B]) []loop.Task[S, B] {
	return slices.Concat(
		call(loop.AtStart, kind+" begin", hooks, func(h Hooks[S, B]) Hook[S, B] { return h.Begin }),
		begin,
		call(loop.EachStep, kind+" batch begin", hooks, func(h Hooks[S, B]) Hook[S, B] { return h.BatchBegin }),
		[]loop.Task[S, B]{step.Named(kind + " step")},
		call(loop.EachStep, "after "+kind+" step", hooks, func(h Hooks[S, B]) Hook[S, B] { return h.AfterStep }),
		epoch,
		call(loop.EachStep, kind+" batch end", hooks, func(h Hooks[S, B]) Hook[S, B] { return h.BatchEnd }),
		last,
		call(loop.AtEnd, kind+" end", hooks, func(h Hooks[S, B]) Hook[S, B] { return h.End }),
	)
}

// call makes tasks of those of the hooks that have the one that pick gives.
func call[S, B any](when loop.Schedule, name string, hooks []Hooks[S, B],
	pick func(Hooks[S, B]) Hook[S, B]) (tasks []loop.Task[S, B]) {
	for _, h := range hooks {
		hook, label := pick(h), name
		if hook == nil {
			continue
		}
		if h.Name != "" {
			label += " (" + h.Name + ")"
		}
		tasks = append(tasks, loop.OnTurn(when, func(ctx context.Context, turn *loop.Turn[S, B]) error {
			before := turn.State
			err := hook(ctx, turn)
			if err != nil && !errors.Is(err, loop.ErrStop) {
				turn.State = before
			}
			return err
		}).Named(label))
	}
	return tasks
}

// resets makes tasks of a reset, which may be nil, and of the hooks after it.
func resets[S, B any](when loop.Schedule, reset func(context.Context, S) (S, error),
	hooks []Hooks[S, B]) (tasks []loop.Task[S, B]) {
	if reset != nil {
		tasks = append(tasks, loop.OnFunc(when, func(ctx context.Context, state S, _ B) (S, loop.Logs, error) {
			state, err := reset(ctx, state)
			return state, loop.Logs{}, err
		}).Named("reset"))
	}
	return append(tasks, call(when, "after reset", hooks, func(h Hooks[S, B]) Hook[S, B] { return h.AfterReset })...)
}
