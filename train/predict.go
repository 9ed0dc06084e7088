package train

import (
	"context"
	"iter"
	"slices"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Predict is Ciclo's predict_loop: it returns a state's outputs for each batch and keeps none. An iteration runs
// Hooks.BatchBegin, Step, AfterStep, BatchEnd and Tasks in this order, then yields the output.
type Predict[S, B, P any] struct {
	// Step returns the outputs for a batch, without the rows of padding. It changes nothing.
	Step  func(ctx context.Context, state S, batch B) (P, error)
	Hooks []Hooks[S, B]
	Tasks []loop.Task[S, B]
}

// Run calls each with each batch's output in order. An error of each ends the run; [loop.ErrStop] ends it without an
// error.
func (p Predict[S, B, P]) Run(ctx context.Context, state S, data loop.Source[B],
	each func(ctx context.Context, output P) error, options ...loop.Option) (loop.Result[S], error) {
	switch d := data.(type) {
	case nil:
	case loop.Data[B]: // its batches may end epochs
		if d != nil {
			data = loop.Data[B](abilities.Complete(iter.Seq2[B, error](d)))
		}
	default:
		data = loop.From(abilities.WholeFrom(data))
	}
	return loop.New(p.tasks(each)...).Run(ctx, state, data, options...)
}

// All returns the outputs of Run as a sequence. It yields an error once, at the end. If the consumer ends early, the
// run stops, and a later error, like of Hooks.End, is lost. The run waits during the consumer's loop body.
func (p Predict[S, B, P]) All(ctx context.Context, state S, data loop.Source[B], options ...loop.Option) iter.Seq2[P, error] {
	options = slices.Clone(options)
	return func(yield func(P, error) bool) {
		// A panic in the consumer's loop body remains the consumer's.
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
				<-outputs
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

func (p Predict[S, B, P]) tasks(each func(context.Context, P) error) []loop.Task[S, B] {
	hooks, err := named("predict", p.Hooks)
	var output P
	var step, handOut hook[S, B]
	if p.Step != nil {
		step = func(ctx context.Context, turn *loop.Turn[S, B]) (err error) {
			output, err = p.Step(ctx, turn.State, turn.Batch)
			return err
		}
	}
	if each != nil {
		handOut = func(ctx context.Context, _ *loop.Turn[S, B]) error {
			o := output
			output = *new(P) // the run keeps no reference to it
			return each(ctx, o)
		}
	}
	last := append(slices.Clone(p.Tasks), loop.OnTurn(loop.EachStep, handOut).Named("output"))
	return around("predict", hooks, nil, loop.OnTurn(loop.EachStep, step).WithErr(err), nil, last)
}
