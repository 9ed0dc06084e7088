package train

import (
	"context"
	"reflect"

	"github.com/lazo-ml/lazo/loop"
)

// TrainStepper is a state that can make a training step: it gives the next state, which may be itself.
type TrainStepper[S, B any] interface {
	TrainStep(ctx context.Context, batch B) (S, loop.Logs, error)
}

// TestStepper is a state that can make a step of a test.
type TestStepper[S, B any] interface {
	TestStep(ctx context.Context, batch B) (S, loop.Logs, error)
}

// PredictStepper is a state that can predict: P is what it says to all of a batch.
type PredictStepper[B, P any] interface {
	PredictStep(ctx context.Context, batch B) (P, error)
}

// Of makes a loop of the methods of a state: TrainStep, ResetStep if there is one, and the hooks of training that it has
// (see the table of the package). What else a loop needs is set then:
//
//	training := train.Of[*Model]()
//	training.Epoch = loop.Steps(100)
//	training.Tests = []train.Test[*Model, Batch]{train.TestOf[*Model](testData)}
//
// A state without a training step does not compile. Ciclo takes the methods of every state, asked or not, and again for
// each test, so that a test step runs twice a batch in the first epoch and once more in each that follows; here a method
// is called once in each of its places.
func Of[S TrainStepper[S, B], B any]() Loop[S, B] {
	l := Loop[S, B]{Step: loop.StepFunc[S, B](func(ctx context.Context, state S, batch B) (S, loop.Logs, error) {
		return state.TrainStep(ctx, batch)
	})}
	l.own, l.Reset, l.err = ofState[S, B]()
	return l
}

// TestOf makes a test of the methods of a state: TestStep, ResetStep if there is one, and the hooks of a test.
func TestOf[S TestStepper[S, B], B any](data func(ctx context.Context) (loop.Data[B], error)) Test[S, B] {
	t := Test[S, B]{Data: data, Step: loop.StepFunc[S, B](func(ctx context.Context, state S, batch B) (S, loop.Logs, error) {
		return state.TestStep(ctx, batch)
	})}
	t.own, t.Reset, t.err = ofState[S, B]()
	return t
}

// PredictOf makes predictions of the methods of a state: PredictStep and the hooks of predicting.
func PredictOf[S PredictStepper[B, P], B, P any]() Predict[S, B, P] {
	p := Predict[S, B, P]{Step: func(ctx context.Context, state S, batch B) (P, error) { return state.PredictStep(ctx, batch) }}
	p.own, _, p.err = ofState[S, B]()
	return p
}

// ofState finds what a state has as methods, besides its steps.
func ofState[S, B any]() (own part[S, B], reset func(context.Context, S) (S, error), err error) {
	if own, err = partOfState[S, B](); err != nil {
		return own, nil, err
	}
	f, err := stateMethod[func(S, context.Context) (S, error)](reflect.TypeFor[S](), "ResetStep")
	if f != nil {
		reset = func(ctx context.Context, state S) (S, error) { return f(state, ctx) }
	}
	return own, reset, err
}
