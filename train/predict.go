package train

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Predict gives the outputs of a state for each batch, one after the other, and keeps none of them. In a turn,
// BatchBegin comes first, then Step, AfterStep, BatchEnd, and Tasks; then the output is handed out.
//
// To gather the rows of all batches in one list:
//
//	rows, err := train.Rows(predict.All(ctx, state, batches))
type Predict[S, B, P any] struct {
	// Step changes nothing; it gives the outputs of a batch.
	Step func(ctx context.Context, state S, batch B) (P, error)
	// Trim removes from an output what does not belong to the examples of its batch, such as the rows of padding:
	// [DropPadding]. With nil an output stays as it is.
	Trim  func(batch B, output P) (P, error)
	Hooks []PredictHooks[S, B]
	Tasks []loop.Task[S, B]
}

// Run calls each with the output of each batch in order. Its error ends the run; [loop.ErrStop] ends it with none.
func (p Predict[S, B, P]) Run(ctx context.Context, state S, data loop.Source[B],
	each func(ctx context.Context, output P) error, options ...loop.Option) (loop.Result[S], error) {
	tasks, err := p.tasks(each)
	if err != nil {
		return refused(state, err)
	}
	return loop.New(tasks...).Run(ctx, state, data, options...)
}

// All is Run as a sequence of outputs. An error is yielded once, at the end; one that comes after the consumer has
// stopped, as that of an End, is lost: use Run where it matters. The run waits while the consumer's loop works, and is
// stopped when the consumer ends early.
func (p Predict[S, B, P]) All(ctx context.Context, state S, data loop.Source[B], options ...loop.Option) iter.Seq2[P, error] {
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
	hooks, err := named(p.Hooks, PredictHooks[S, B].all)
	if p.Step == nil {
		err = errors.Join(err, errors.New("no prediction step: set Step, or use PredictOf with a state that has a method PredictStep"))
	}
	if each == nil {
		err = errors.Join(err, errors.New("nobody takes the outputs: give Run a function, or use All"))
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
	last := append(slices.Clone(p.Tasks), loop.OnTurn(loop.EachStep, handOut).Named("output"))
	return around("predict", hooks, nil, loop.OnTurn(loop.EachStep, step), nil, last), nil
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

// Collect gathers the outputs of all batches, for outputs that are joined in a way of their own. Beside an error it
// gives those that came before.
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
