package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// EvalSpec is an evaluation at the end of inner loops, on data of its own. It gets the state; the state that its steps
// make is dropped, so it takes no part in the training. (A state that changes in place is what the steps made of it: an
// evaluation step must change nothing in it that trains.)
//
// Jaxloop goes on training with the state that an evaluation gives back, so that an evaluation which counts its steps
// shortens the training; we drop it.
type EvalSpec[S, B any] struct {
	// Name is that of its outputs in [OuterResult], and stands behind the names of its entries: loss_test. Each has its own.
	Name string
	// Step makes one step of the evaluation. [loop.ErrStop] ends the evaluation and, after this border, the run.
	Step loop.Stepper[S, B]
	// Data is called anew for each evaluation.
	Data func(context.Context) (loop.Data[B], error)
	// Steps ends the evaluation before its data does; zero takes all.
	Steps loop.Steps
	// Interval is at which inner loops it runs, by their number: 2 means the 2nd, the 4th, …; zero means each.
	Interval InnerLoops
	// Reset clears what the state sums up, before the first step. With nil, an evaluation in an [Outer] loop takes that of the
	// loop.
	Reset func(ctx context.Context, state S) (S, error)
	// When can refuse an evaluation that is due; nil refuses none.
	When func(EvalContext) bool
	// Aggregate makes the outputs from what the steps logged.
	Aggregate loop.Aggregations
	// End are actions behind each evaluation, such as to stop when a value does not get better any more.
	End []Action[S]
}

// EvalContext is where the training is when an evaluation is due.
type EvalContext struct {
	// Continuous tells that checkpoints are evaluated, see [Continuous].
	Continuous bool
	// Step is the number of training steps in the state.
	Step int64
	// Loop is the number of the inner loop, zero if Continuous.
	Loop int64
}

func (e EvalSpec[S, B]) label() string { return "evaluation " + e.Name }

func (e EvalSpec[S, B]) dueAt(at EvalContext) bool {
	return at.Loop%int64(max(e.Interval, 1)) == 0 && (e.When == nil || e.When(at))
}

func (e EvalSpec[S, B]) check() error {
	var errs []error
	if e.Step == nil {
		errs = append(errs, errors.New("no Step given"))
	}
	if e.Data == nil {
		errs = append(errs, errors.New("no Data given"))
	}
	if e.Steps < 0 || e.Interval < 0 {
		errs = append(errs, fmt.Errorf("want Steps and Interval not negative, got %d and %d", e.Steps, e.Interval))
	}
	errs = append(errs, checkAggregations(e.Aggregate), checkActions(e.End))
	return errors.Join(errs...)
}

func checkEvals[S, B any](evals []EvalSpec[S, B]) error {
	var errs []error
	names := map[string]bool{}
	for i, e := range evals {
		err := e.check()
		if e.Name == "" || names[e.Name] {
			err = errors.Join(fmt.Errorf("want a name that no other has, got %q", e.Name), err)
		}
		names[e.Name] = true
		if err != nil {
			errs = append(errs, fmt.Errorf("evaluation %d (%s): %w", i+1, e.Name, err))
		}
	}
	return errors.Join(errs...)
}

func checkActions[S any](actions []Action[S]) error {
	var errs []error
	for i, a := range actions {
		if a.Do == nil {
			errs = append(errs, fmt.Errorf("action %d (%s): %w", i+1, a.Name, errNoFunction))
		}
		if a.Every < 0 {
			errs = append(errs, fmt.Errorf("action %d (%s): Every must not be negative, got %d", i+1, a.Name, a.Every))
		}
	}
	return errors.Join(errs...)
}

// checkAggregations asks package loop, which alone can look into them.
func checkAggregations(as loop.Aggregations) error {
	nothing := func(context.Context) (loop.Data[int], error) { return nil, nil }
	task := loop.Evaluation[int, int]{Name: "of Aggregate", Data: nothing, Aggregate: as}.On(loop.Never)
	_, err := loop.New(task).Plan()
	return err
}

// evaluations is what a run knows of its evaluations.
type evaluations struct {
	results    map[string]Inner
	counts     map[string]int64
	background Background
}

func newEvaluations() evaluations {
	return evaluations{results: map[string]Inner{}, counts: map[string]int64{}}
}

// evalOptions are those that close what the specs opened, and wait for the background before that.
func evalOptions[S, B any](evals []EvalSpec[S, B], background *Background) (options []loop.Option) {
	for _, e := range evals {
		options = append(options, closing(e.End)...)
	}
	return append(options, attend("background work", loop.AtEnd, nil, background.end))
}

// run evaluates once; at says where the training is. The logs are for the turn of the training. The error may be a wish to
// stop: the evaluation counts then.
func (e EvalSpec[S, B]) run(ctx context.Context, es *evaluations, state S, at Inner) (loop.Logs, error) {
	data, err := e.Data(ctx)
	if err != nil {
		return loop.Logs{}, fmt.Errorf("data: %w", err)
	}
	var options []loop.Option
	if e.Steps > 0 {
		options = append(options, loop.Until(e.Steps))
	}
	clean := state
	if e.Reset != nil {
		if clean, err = e.Reset(ctx, state); err != nil {
			return loop.Logs{}, fmt.Errorf("reset: %w", err)
		}
	}
	began := time.Now()
	result, err := loop.New(loop.On(loop.EachStep, e.Step)).Run(ctx, clean, data, options...)
	if err != nil {
		return loop.Logs{}, err
	}
	var rates loop.Logs
	setRates(&rates, result.Elapsed, time.Since(began))
	at.Steps = result.Elapsed.Steps
	at.history = func() *loop.History { return result.History }
	at.outputs = outputs(at.history, e.Aggregate, rates)
	es.results[e.Name] = at
	es.counts[e.Name]++
	logs := result.History.Aggregate(e.Aggregate).Suffix(e.Name)
	stop, err := act(ctx, e.End, es.counts[e.Name], Border[S]{at, state, maps.Clone(es.results), &es.background})
	switch {
	case err != nil:
		return logs, err
	case result.Stop != nil:
		return logs, result.Stop
	}
	return logs, stop
}

// act does the actions that are due. A wish to stop lets the others be done.
func act[S any](ctx context.Context, actions []Action[S], number int64, at Border[S]) (stop, err error) {
	for _, a := range actions {
		if !a.dueAt(number) {
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
