package outer

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// Action is done at the border of an inner loop. It looks at the state and does not change it. An error ends the run;
// [loop.ErrStop] asks the run to stop, after everything else that is due at this border.
type Action[S any] struct {
	// Name stands in errors.
	Name string
	// Every is the interval: with 2 the action is due at the inner loops of number 2, 4, …; with 0 at each. An action
	// of an [Eval] counts the evaluations of it in this run.
	Every InnerLoops
	Do    func(ctx context.Context, at Border[S]) error
	// Close, if there is one, is called once when the run is over, however it ended.
	Close func(ctx context.Context) error
}

// Border is what an action sees.
type Border[S any] struct {
	// Inner is the inner loop that has ended, or the evaluation. A begin action sees the number of the inner loop
	// that begins, without outputs.
	Inner
	State S
	// Evaluations are the newest of each name.
	Evaluations map[string]Inner
	// Group takes functions that go on beside the training.
	Group *Group
}

func (a Action[S]) label() string {
	if a.Name == "" {
		return "action"
	}
	return "action " + a.Name
}

func checkActions[S any](actions []Action[S]) error {
	var errs []error
	for i, a := range actions {
		if a.Do == nil {
			errs = append(errs, fmt.Errorf("action %d (%s): %w", i+1, a.Name, loop.ErrNoFunction))
		}
		if a.Every < 0 {
			errs = append(errs, fmt.Errorf("action %d (%s): Every must not be negative, got %d", i+1, a.Name, a.Every))
		}
	}
	return errors.Join(errs...)
}

// act does the actions that are due: after a wish to stop the others too.
func act[S any](ctx context.Context, actions []Action[S], number int64, at Border[S]) (stop, err error) {
	for _, a := range actions {
		if !a.Every.due(number) {
			continue
		}
		err := a.Do(ctx, at)
		switch {
		case err == nil:
		case !isStop(err):
			return nil, fmt.Errorf("%s: %w", a.label(), err)
		case stop == nil:
			stop = fmt.Errorf("%s: %w", a.label(), err)
		}
	}
	return stop, nil
}

// closing are the callbacks that close actions which are no callbacks themselves.
func closing[S any](actions []Action[S]) (options []loop.Option) {
	for _, a := range actions {
		if a.Close != nil {
			options = append(options, attend(a.label(), loop.AtEnd, nil, a.Close))
		}
	}
	return options
}

// attend is a callback with an end. Either function may be nil.
func attend(name string, when loop.Schedule, watch loop.Watcher, end func(context.Context) error) loop.Option {
	start := func(loop.Beginning) (loop.Attendant, error) { return attendant{watch, end}, nil }
	return loop.Callback{Name: name, When: when, Start: start}
}

type attendant struct {
	watch loop.Watcher
	end   func(context.Context) error
}

func (a attendant) Watch(ctx context.Context, r loop.Report) error {
	if a.watch == nil {
		return nil
	}
	return a.watch(ctx, r)
}

func (a attendant) End(ctx context.Context, _ loop.Ending) error {
	if a.end == nil {
		return nil
	}
	return a.end(ctx)
}

func isStop(err error) bool { return errors.Is(err, loop.ErrStop) }
