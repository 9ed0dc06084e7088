package train

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Predict gives what a state says to each batch, one after the other, and keeps none of it. In a turn, BatchBegin comes
// first, then Step, AfterStep, BatchEnd, and Tasks; then the output is handed out. Ciclo keeps all outputs in the history,
// which holds no more than memory does.
//
// To gather the rows of all batches in one list:
//
//	rows, err := train.Rows(predict.All(ctx, state, batches))
type Predict[S, B, P any] struct {
	// Step changes nothing; it gives the outputs of a batch.
	Step func(ctx context.Context, state S, batch B) (P, error)
	// Trim takes off an output what does not belong to the examples of its batch, such as the rows of its padding:
	// [DropPadding]. With nil an output stays as it is.
	Trim  func(batch B, output P) (P, error)
	Hooks PredictHooks[S, B]
	// Callbacks are objects that have hooks of predicting as methods.
	Callbacks []any
	Tasks     []loop.Task[S, B]

	own part[S, B]
	err error
}

// PredictHooks are those of predicting. Any of them may be nil.
type PredictHooks[S, B any] struct {
	Begin      Hook[S, B] // before the first step, when the first batch is there
	BatchBegin Hook[S, B]
	AfterStep  Hook[S, B]
	BatchEnd   Hook[S, B]
	End        Hook[S, B] // after the last step
}

// Run calls each with the output of each batch in order. Its error ends the run; [loop.ErrStop] ends it with none.
func (p Predict[S, B, P]) Run(ctx context.Context, state S, data loop.Data[B], each func(ctx context.Context, output P) error, options ...loop.Option) (loop.Result[S], error) {
	tasks, err := p.tasks(each)
	return run(ctx, tasks, err, state, data, options)
}

// All is Run as a sequence of outputs. An error is yielded once, at the end; one that comes up after the consumer has
// stopped, as of an End, is not seen: use Run where it matters. The consumer's loop runs while the run waits, and a run that
// is not consumed to its end is stopped.
func (p Predict[S, B, P]) All(ctx context.Context, state S, data loop.Data[B], options ...loop.Option) iter.Seq2[P, error] {
	options = slices.Clone(options)
	return func(yield func(P, error) bool) {
		// The run is on a goroutine of its own, so that a panic in the consumer's loop stays the consumer's.
		outputs, more := make(chan P), make(chan bool)
		var err error
		go func() {
			defer close(outputs)
			_, err = p.Run(ctx, state, data, func(_ context.Context, output P) error {
				outputs <- output
				if !<-more {
					return loop.ErrStop
				}
				return nil
			}, options...)
		}()
		waiting := false
		defer func() {
			if waiting {
				more <- false
				<-outputs // closed when the run is over
			}
		}()
		for output := range outputs {
			waiting = true
			if !yield(output, nil) {
				return
			}
			waiting = false
			more <- true
		}
		if err != nil {
			var none P
			yield(none, err)
		}
	}
}

func (p Predict[S, B, P]) tasks(each func(context.Context, P) error) ([]loop.Task[S, B], error) {
	parts := []part[S, B]{p.own, {predict: p.Hooks}}
	err := p.err
	if p.Step == nil {
		err = errors.Join(err, errors.New("no prediction step: set Step, or use PredictOf with a state that has a method PredictStep"))
	}
	if each == nil {
		err = errors.Join(err, errors.New("nobody takes the outputs: give Run a function, or use All"))
	}
	for i, c := range p.Callbacks {
		part, found, callbackErr := partOf[S, B](c)
		if callbackErr == nil && found.predict == 0 {
			callbackErr = errNoHook("predicting", c)
		}
		if callbackErr != nil {
			err = errors.Join(err, fmt.Errorf("callback %d: %w", i+1, callbackErr))
		}
		parts = append(parts, part)
	}
	if err != nil {
		return nil, err
	}

	var output P
	step := func(ctx context.Context, turn *loop.Turn[S, B]) error {
		var stop, err error
		if output, stop = p.Step(ctx, turn.State, turn.Batch); stop != nil && !errors.Is(stop, loop.ErrStop) {
			return stop
		}
		if p.Trim != nil {
			if output, err = p.Trim(turn.Batch, output); err != nil {
				return fmt.Errorf("trim: %w", err)
			}
		}
		return stop
	}
	handOut := func(ctx context.Context, _ *loop.Turn[S, B]) error {
		o := output
		var none P
		output = none // it is the consumer's now
		return each(ctx, o)
	}
	var list tasks[S, B]
	list.hooks(loop.AtStart, "predict begin", parts, func(p part[S, B]) Hook[S, B] { return p.predict.Begin })
	list.hooks(loop.EachStep, "predict batch begin", parts, func(p part[S, B]) Hook[S, B] { return p.predict.BatchBegin })
	list.add(loop.OnTurn(loop.EachStep, step).Named("predict step"))
	list.hooks(loop.EachStep, "after predict step", parts, func(p part[S, B]) Hook[S, B] { return p.predict.AfterStep })
	list.hooks(loop.EachStep, "predict batch end", parts, func(p part[S, B]) Hook[S, B] { return p.predict.BatchEnd })
	list.add(p.Tasks...)
	list.add(loop.OnTurn(loop.EachStep, handOut).Named("output"))
	list.hooks(loop.AtEnd, "predict end", parts, func(p part[S, B]) Hook[S, B] { return p.predict.End })
	return list, nil
}

// DropPadding is a Trim for outputs of one row an example: it keeps the first rows, as many as the batch has examples.
// Fewer rows than that are an error.
func DropPadding[B loop.Sized, T any](batch B, rows []T) ([]T, error) {
	n := batch.Samples()
	if n < 0 || len(rows) < n {
		return nil, fmt.Errorf("drop padding: the batch has %d examples, the output %d rows", n, len(rows))
	}
	return rows[:n:n], nil
}

// Rows gathers the rows of all outputs in one list, in order. Beside an error it gives those that came before.
func Rows[T any](outputs iter.Seq2[[]T, error]) ([]T, error) {
	var all []T
	for rows, err := range outputs {
		if err != nil {
			return all, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// Collect gathers the outputs of all batches, for outputs that are joined in a way of their own. Beside an error it gives
// those that came before.
func Collect[P any](outputs iter.Seq2[P, error]) ([]P, error) {
	var all []P
	for output, err := range outputs {
		if err != nil {
			return all, err
		}
		all = append(all, output)
	}
	return all, nil
}
