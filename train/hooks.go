package train

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/lazo-ml/lazo/loop"
)

// Hook is called at a fixed place of a loop. It may look at and change the state and the logs of the turn; on an error
// the state stays as it was before. [loop.ErrStop] ends the run after the turn. At the begin and the end of a run the turn is
// not counted, its batch is the first or the last one, and what is logged is a row of its own.
type Hook[S, B any] func(ctx context.Context, turn *loop.Turn[S, B]) error

// Hooks are those of training. Any of them may be nil.
type Hooks[S, B any] struct {
	Begin      Hook[S, B] // before the first step, when the first batch is there
	BatchBegin Hook[S, B]
	AfterStep  Hook[S, B]
	AfterReset Hook[S, B] // after each Reset, and in its places also where the loop has none
	EpochEnd   Hook[S, B]
	BatchEnd   Hook[S, B]
	End        Hook[S, B] // after the last step
}

// TestHooks are those of a test. Any of them may be nil.
type TestHooks[S, B any] struct {
	Begin      Hook[S, B] // before Reset and the first step, when the first batch is there
	AfterReset Hook[S, B]
	BatchBegin Hook[S, B]
	AfterStep  Hook[S, B]
	BatchEnd   Hook[S, B]
	End        Hook[S, B] // after the last step
}

// part is somebody who has hooks.
type part[S, B any] struct {
	who     string // in errors: "" for Hooks
	train   Hooks[S, B]
	test    TestHooks[S, B]
	predict PredictHooks[S, B]
}

// found is how many hooks a part has.
type found struct{ train, test, predict int }

// find fills a part with the methods that get finds under the names of hooks.
func (p *part[S, B]) find(get func(name string) Hook[S, B]) (n found) {
	named := func(count *int, name string) Hook[S, B] {
		h := get(name)
		if h != nil {
			*count++
		}
		return h
	}
	reset := named(&n.train, "AfterResetStep")
	if reset != nil {
		n.test++
	}
	p.train = Hooks[S, B]{
		Begin:      named(&n.train, "TrainBegin"),
		BatchBegin: named(&n.train, "TrainBatchBegin"),
		AfterStep:  named(&n.train, "AfterTrainStep"),
		AfterReset: reset,
		EpochEnd:   named(&n.train, "EpochEnd"),
		BatchEnd:   named(&n.train, "TrainBatchEnd"),
		End:        named(&n.train, "TrainEnd"),
	}
	p.test = TestHooks[S, B]{
		Begin:      named(&n.test, "TestBegin"),
		AfterReset: reset,
		BatchBegin: named(&n.test, "TestBatchBegin"),
		AfterStep:  named(&n.test, "AfterTestStep"),
		BatchEnd:   named(&n.test, "TestBatchEnd"),
		End:        named(&n.test, "TestEnd"),
	}
	p.predict = PredictHooks[S, B]{
		Begin:      named(&n.predict, "PredictBegin"),
		BatchBegin: named(&n.predict, "PredictBatchBegin"),
		AfterStep:  named(&n.predict, "AfterPredictStep"),
		BatchEnd:   named(&n.predict, "PredictBatchEnd"),
		End:        named(&n.predict, "PredictEnd"),
	}
	return n
}

// partOf finds the hooks of a callback.
func partOf[S, B any](callback any) (p part[S, B], n found, err error) {
	if callback == nil {
		return p, n, errors.New("it is nil")
	}
	v := reflect.ValueOf(callback)
	p.who = v.Type().String()
	n = p.find(func(name string) Hook[S, B] {
		h, hookErr := as[func(context.Context, *loop.Turn[S, B]) error](v.Type(), name, v.MethodByName(name))
		err = errors.Join(err, hookErr)
		return h
	})
	return p, n, errors.Join(err, noEpochBegin(v.Type()))
}

// partOfState finds the hooks that are methods of states. Each is called on the state of its turn.
func partOfState[S, B any]() (p part[S, B], err error) {
	t := reflect.TypeFor[S]()
	if t.Kind() == reflect.Interface {
		return p, fmt.Errorf("the state is of the interface type %s: its methods are found by a type that is none", t)
	}
	p.who = "state"
	p.find(func(name string) Hook[S, B] {
		f, hookErr := stateMethod[func(S, context.Context, *loop.Turn[S, B]) error](t, name)
		err = errors.Join(err, hookErr)
		if f == nil {
			return nil
		}
		return func(ctx context.Context, turn *loop.Turn[S, B]) error { return f(turn.State, ctx, turn) }
	})
	return p, errors.Join(err, noEpochBegin(t))
}

// stateMethod finds a method of a type, as a function that takes the receiver first. F's zero stands for none.
func stateMethod[F any](t reflect.Type, name string) (f F, err error) {
	method, _ := t.MethodByName(name)
	return as[F](t, name, method.Func)
}

// as is a method as a function of type F, nil if t has no such method. One that has the name only is an error: passed over
// in silence, it would never run.
func as[F any](t reflect.Type, name string, method reflect.Value) (f F, err error) {
	if !method.IsValid() {
		if _, has := reflect.PointerTo(t).MethodByName(name); has && t.Kind() != reflect.Pointer {
			return f, fmt.Errorf("method %s of %s has a pointer receiver: it is not a method of the value", name, t)
		}
		return f, nil
	}
	want := reflect.TypeFor[F]()
	if method.Type() != want {
		return f, fmt.Errorf("method %s of %s is a %s, but must be a %s", name, t, method.Type(), want)
	}
	return method.Interface().(F), nil
}

// noEpochBegin refuses the one name that people will look for and not find.
func noEpochBegin(t reflect.Type) error {
	for _, name := range []string{"EpochBegin", "TrainEpochBegin"} {
		if _, has := t.MethodByName(name); has {
			return fmt.Errorf("method %s of %s: there is no such hook; an epoch begins at TrainBegin, or where EpochEnd was", name, t)
		}
	}
	return nil
}

func errNoHook(of string, callback any) error {
	if _, ok := callback.(loop.Option); ok {
		return errors.New("it is a loop.Option: give it to Run")
	}
	return fmt.Errorf("%T has no hook of %s: see the table of package train for their names", callback, of)
}

// tasks is a list of tasks that grows.
type tasks[S, B any] []loop.Task[S, B]

func (l *tasks[S, B]) add(tasks ...loop.Task[S, B]) { *l = append(*l, tasks...) }

// hooks adds one hook of all parts that have it.
func (l *tasks[S, B]) hooks(when loop.Schedule, name string, parts []part[S, B], pick func(part[S, B]) Hook[S, B]) {
	for _, p := range parts {
		hook := pick(p)
		if hook == nil {
			continue
		}
		called := name
		if p.who != "" {
			called += " (" + p.who + ")"
		}
		l.add(loop.OnTurn(when, func(ctx context.Context, turn *loop.Turn[S, B]) error {
			before := turn.State
			err := hook(ctx, turn)
			if err != nil && !errors.Is(err, loop.ErrStop) {
				turn.State = before
			}
			return err
		}).Named(called))
	}
}

// reset adds a reset, if there is one, and the hooks behind it.
func (l *tasks[S, B]) reset(when loop.Schedule, reset func(context.Context, S) (S, error), parts []part[S, B], pick func(part[S, B]) Hook[S, B]) {
	if reset != nil {
		l.add(loop.OnFunc(when, func(ctx context.Context, state S, _ B) (S, loop.Logs, error) {
			state, err := reset(ctx, state)
			return state, loop.Logs{}, err
		}).Named("reset"))
	}
	l.hooks(when, "after reset", parts, pick)
}
