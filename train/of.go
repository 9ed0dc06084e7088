package train

import (
	"context"
	"fmt"
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

// PredictStepper is a state that can predict: P has the outputs for the examples of a batch.
type PredictStepper[B, P any] interface {
	PredictStep(ctx context.Context, batch B) (P, error)
}

// ResetStepper is a state that can clear what it sums up, as mean metrics do.
type ResetStepper[S any] interface {
	ResetStep(ctx context.Context) (S, error)
}

// Of makes a loop of the methods of a state: TrainStep, and the ResetStep of a [ResetStepper] if there is one; a
// ResetStep of another form is an error of Run. What else a loop needs is set then:
//
//	training := train.Of[*Model]()
//	training.Epoch = loop.Steps(100)
//	training.Tests = []train.Test[*Model, Batch]{train.TestOf[*Model](testData)}
//	training.Hooks = []train.Hooks[*Model, Batch]{{EpochEnd: train.Method((*Model).EpochEnd)}}
func Of[S TrainStepper[S, B], B any]() Loop[S, B] {
	l := Loop[S, B]{Step: loop.StepFunc[S, B](func(ctx context.Context, state S, batch B) (S, loop.Logs, error) {
		return state.TrainStep(ctx, batch)
	})}
	l.Reset, l.err = resetOf[S]()
	return l
}

// TestOf makes a test of the methods of a state: TestStep, and ResetStep as [Of] takes it.
func TestOf[S TestStepper[S, B], B any](data loop.Source[B]) Test[S, B] {
	t := Test[S, B]{Data: data, Step: loop.StepFunc[S, B](func(ctx context.Context, state S, batch B) (S, loop.Logs, error) {
		return state.TestStep(ctx, batch)
	})}
	t.Reset, t.err = resetOf[S]()
	return t
}

// PredictOf makes predictions of the method PredictStep of a state.
func PredictOf[S PredictStepper[B, P], B, P any]() Predict[S, B, P] {
	return Predict[S, B, P]{Step: func(ctx context.Context, state S, batch B) (P, error) {
		return state.PredictStep(ctx, batch)
	}}
}

// resetOf is the ResetStep of states of type S, nil if they have none. One that has the name only would never be
// called.
func resetOf[S any]() (func(context.Context, S) (S, error), error) {
	var state S
	if _, ok := any(state).(ResetStepper[S]); ok {
		return func(ctx context.Context, state S) (S, error) { return any(state).(ResetStepper[S]).ResetStep(ctx) }, nil
	}
	t := reflect.TypeFor[S]()
	method, has := t.MethodByName("ResetStep")
	_, onPointer := reflect.PointerTo(t).MethodByName("ResetStep")
	switch {
	case t.Kind() == reflect.Interface:
		return nil, fmt.Errorf("the state is of the interface type %s: its methods are found by a type that is none", t)
	case has:
		want := reflect.TypeFor[func(S, context.Context) (S, error)]()
		return nil, fmt.Errorf("method ResetStep of %s is a %s, but must be a %s", t, method.Type, want)
	case onPointer:
		return nil, fmt.Errorf("method ResetStep of %s has a pointer receiver: it is not a method of the value", t)
	}
	return nil, nil
}
