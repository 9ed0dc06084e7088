package train

import (
	"context"
	"fmt"
	"reflect"

	"github.com/lazo-ml/lazo/loop"
)

// Of makes a loop of a state's TrainStep and its ResetStep(ctx) (S, error), if any. A ResetStep with another signature
// is an error of Run. The other fields can be set.
func Of[S interface {
	TrainStep(ctx context.Context, batch B) (S, loop.Logs, error)
}, B any]() Loop[S, B] {
	l := Loop[S, B]{Step: loop.StepFunc[S, B](func(ctx context.Context, state S, batch B) (S, loop.Logs, error) {
		return state.TrainStep(ctx, batch)
	})}
	l.Reset, l.err = resetOf[S]()
	return l
}

// TestOf makes an evaluation named "test" of a state's TestStep, and of ResetStep as [Of] does.
func TestOf[S interface {
	TestStep(ctx context.Context, batch B) (S, loop.Logs, error)
}, B any](data loop.Source[B], hooks ...Hooks[S, B]) loop.Evaluation[S, B] {
	reset, err := resetOf[S]()
	step := loop.On(loop.EachStep, loop.StepFunc(func(ctx context.Context, state S, batch B) (S, loop.Logs, error) {
		return state.TestStep(ctx, batch)
	}))

	t := test("test", step.WithErr(err), data, hooks)
	t.Reset = reset
	return t
}

// PredictOf makes predictions of a state's PredictStep. P has a batch's outputs.
func PredictOf[S interface {
	PredictStep(ctx context.Context, batch B) (P, error)
}, B, P any]() Predict[S, B, P] {
	return Predict[S, B, P]{Step: func(ctx context.Context, state S, batch B) (P, error) {
		return state.PredictStep(ctx, batch)
	}}
}

func resetOf[S any]() (func(context.Context, S) (S, error), error) {
	type resetter interface {
		ResetStep(ctx context.Context) (S, error)
	}
	var state S
	if _, ok := any(state).(resetter); ok {
		return func(ctx context.Context, state S) (S, error) { return any(state).(resetter).ResetStep(ctx) }, nil
	}
	t := reflect.TypeFor[S]()
	method, has := t.MethodByName("ResetStep")
	_, onPointer := reflect.PointerTo(t).MethodByName("ResetStep")
	switch {
	case t.Kind() == reflect.Interface:
		return nil, fmt.Errorf("the state has the interface type %s, so its methods are not known: use a concrete type", t)
	case has:
		want := reflect.TypeFor[func(S, context.Context) (S, error)]()
		return nil, fmt.Errorf("method ResetStep of %s is a %s, but must be a %s", t, method.Type, want)
	case onPointer:
		return nil, fmt.Errorf("method ResetStep of %s has a pointer receiver: it is not a method of the value", t)
	}
	return nil, nil
}
