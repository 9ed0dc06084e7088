package outer

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// Eval is a test at the end of inner loops. It needs a Name: its outputs in [Result] have it, and the names of its
// entries end with it, as loss_test. Without a Reset it takes that of the [Loop]. A Step that returns [loop.ErrStop]
// ends the evaluation and, after this border, the run. (A state that changes in place is what the steps made of it,
// kept or not: a test step must change nothing in it that trains.)
type Eval[S, B any] struct {
	train.Test[S, B]
	// Every is the interval: with 2 it runs at the inner loops of number 2, 4, …; with 0 at each.
	Every InnerLoops
	// When, if there is one, can leave out an evaluation that is due. It sees the inner loop that has ended, without
	// outputs; in a [Continuous] evaluation the number 0 and, in Elapsed, the steps of the checkpoint.
	When func(at Inner) bool
	// End are actions behind each evaluation, for example one that stops when a value does not get better any more.
	End []Action[S]
}

func (e Eval[S, B]) label() string { return "evaluation " + e.Name }

func (e Eval[S, B]) check() error {
	_, err := e.Evaluation()
	if e.Every < 0 {
		err = errors.Join(err, fmt.Errorf("want Every not negative, got %d", e.Every))
	}
	return errors.Join(err, checkActions(e.End))
}

func checkEvals[S, B any](evals []Eval[S, B]) error {
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

// evaluations is what a run keeps of its evaluations, and the functions that actions started.
type evaluations struct {
	results map[string]Inner
	counts  map[string]int64
	group   Group
}

func newEvaluations() evaluations {
	return evaluations{results: map[string]Inner{}, counts: map[string]int64{}}
}

// ends are callbacks that close the actions of evaluations and, before that, wait for the group.
func ends[S, B any](evals []Eval[S, B], group *Group) (options []loop.Option) {
	for _, e := range evals {
		options = append(options, closing(e.End)...)
	}
	return append(options, attend("background work", loop.AtEnd, nil, group.end))
}

// evaluate does the evaluation and its actions in a turn; at says where the training is. The error may be a wish to
// stop: the evaluation counts then.
func (e Eval[S, B]) evaluate(ctx context.Context, es *evaluations, turn *loop.Turn[S, B], at Inner) error {
	test, err := e.Evaluation()
	if err != nil {
		return err
	}
	result, logs, err := test.Run(ctx, turn.State)
	if err != nil {
		return err
	}
	if e.KeepState {
		turn.State = result.State
	}
	turn.Logs.Merge(logs)
	history := result.History // without the state
	at.Steps, at.history = result.Elapsed.Steps, func() *loop.History { return history }
	at.outputs = outputs(at.history, e.Aggregate, rates(result.Elapsed, result.Elapsed.Time))
	es.results[e.Name] = at
	es.counts[e.Name]++
	stop, err := act(ctx, e.End, es.counts[e.Name], Border[S]{at, turn.State, maps.Clone(es.results), &es.group})
	switch {
	case err != nil:
		return err
	case result.Stop != nil:
		return result.Stop
	}
	return stop
}
