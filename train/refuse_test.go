package train_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// Hooks that would never be called do not compile. Hooks without a function are an error.
func TestD07_whatHasNoHook(t *testing.T) {
	fine := func(context.Context, *turn) error { return nil }
	lists := []hooks{{Begin: fine}, {Name: "deaf"}}
	test := testOn(1, step, hooks{}, hooks{End: fine})
	predict := func(list ...hooks) func() (loop.Result[int], error) {
		return func() (loop.Result[int], error) {
			p := train.Predict[int, int, int]{Hooks: list, Step: func(context.Context, int, int) (int, error) { return 0, nil }}
			return p.Run(t.Context(), 3, upTo(1), func(context.Context, int) error { return nil })
		}
	}
	for _, row := range []struct {
		name string
		run  func() (loop.Result[int], error)
		err  string
	}{
		{"training", func() (loop.Result[int], error) {
			return toy{Step: step, Hooks: lists}.Run(t.Context(), 3, upTo(1))
		}, "loop: task 2 (each step: train step): hooks 2: none of them is set"},
		{"nil as a method", func() (loop.Result[int], error) {
			var none func(int, context.Context, *turn) error
			return toy{Step: step, Hooks: []hooks{{EpochEnd: train.Method(none)}}}.Run(t.Context(), 3, upTo(1))
		}, "loop: task 1 (each step: train step): hooks 1: none of them is set"},
		{"a test in a training", func() (loop.Result[int], error) {
			return toy{Step: step, Tests: []check{test}}.Run(t.Context(), 3, upTo(1))
		}, "loop: task 2 (at end: evaluation test): task 1 (each step: test step): hooks 1: none of them is set"},
		{"a test on a schedule", func() (loop.Result[int], error) {
			return toy{Step: step, Tasks: []loop.Task[int, int]{test.On(loop.AtEnd)}}.Run(t.Context(), 3, upTo(1))
		}, "loop: task 2 (at end: evaluation test): task 1 (each step: test step): hooks 1: none of them is set"},
		{"a test", func() (loop.Result[int], error) {
			result, _, err := test.Run(t.Context(), 3)
			return result, err
		}, "loop: evaluation test: task 1 (each step: test step): hooks 1: none of them is set"},
		{"an epoch of a test", func() (loop.Result[int], error) {
			result, _, err := testOn(1, step, hooks{EpochEnd: fine}).Run(t.Context(), 3)
			return result, err
		}, "loop: evaluation test: task 1 (each step: test step): hooks 1: EpochEnd is set, but a test loop has no epochs"},
		{"predicting", predict(hooks{AfterStep: fine}, hooks{}), "loop: task 1 (each step: predict step): hooks 2: none of them is set"},
		{"an epoch of predicting", predict(hooks{EpochEnd: fine}), "loop: task 1 (each step: predict step): hooks 1: EpochEnd is set, but a predict loop has no epochs"},
		{"a reset of predicting", predict(hooks{AfterReset: fine}), "loop: task 1 (each step: predict step): hooks 1: AfterReset is set, but a predict loop has no reset"},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := row.run()
			require.EqualError(t, err, row.err)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 3, result.State)
			require.NotNil(t, result.History)
		})
	}
	_, err := toy{Step: step, Hooks: lists[:1], Tests: []check{testOn(1, step, hooks{End: fine})}}.Run(t.Context(), 3, upTo(1))
	require.NoError(t, err)
	t.Log("D07: 6 hooks that nobody would have called refused")
}

const callers = `package callbacks

import (
	"context"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

type turn = loop.Turn[int, int]

type (
	deaf      struct{}
	misshapen struct{}
	other     struct{}
	pointer   struct{}
)

func (misshapen) EpochEnd() error                                     { return nil }
func (other) EpochEnd(context.Context, *loop.Turn[string, int]) error { return nil }
func (*pointer) EpochEnd(context.Context, *turn) error                { return nil }

var _ = train.Loop[int, int]{Hooks: []train.Hooks[int, int]{{EpochEnd: (&pointer{}).EpochEnd}, %s}}
`

//lazo:norace
func TestD07_whatDoesNotCompile(t *testing.T) {
	files := token.NewFileSet()
	packages := importer.ForCompiler(files, "source", nil)
	for _, row := range []struct{ name, hooks, err string }{
		{"nothing wrong", `{End: (&pointer{}).EpochEnd}`, ""},
		{"no hook", `{EpochEnd: deaf{}.EpochEnd}`, "deaf{}.EpochEnd undefined"},
		{"an object", `deaf{}`, "cannot use deaf{}"},
		{"an option", `loop.Until(loop.Steps(1))`, "cannot use loop.Until"},
		{"nil", `nil`, "cannot use nil"},
		{"another form", `{EpochEnd: misshapen{}.EpochEnd}`, "cannot use misshapen{}.EpochEnd"},
		{"other types", `{EpochEnd: other{}.EpochEnd}`, "cannot use other{}.EpochEnd"},
		{"a value with methods of its pointer", `{EpochEnd: pointer{}.EpochEnd}`, "cannot call pointer method"},
		{"another form of a state's method", `{EpochEnd: train.Method(misshapen.EpochEnd)}`, "does not match"},
		{"a method of another type than the state", `{EpochEnd: train.Method(other.EpochEnd)}`, "does not match"},
		{"the begin of an epoch", `{EpochBegin: (&pointer{}).EpochEnd}`, "unknown field EpochBegin"},
	} {
		t.Run(row.name, func(t *testing.T) {
			file, err := parser.ParseFile(files, row.name, fmt.Sprintf(callers, row.hooks), 0)
			require.NoError(t, err)
			_, err = (&types.Config{Importer: packages}).Check("callbacks", files, []*ast.File{file}, nil)
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.err)
			}
		})
	}
}

func TestLoop_refusesBadSettings(t *testing.T) {
	test := testOn(1, step)
	for _, row := range []struct {
		name string
		loop toy
		err  string
	}{
		{"no step", toy{Tests: []check{test}}, "loop: task 1 (each step: train step): no function given"},
		{"zero epoch", toy{Step: step, Epoch: loop.Steps(0)}, "loop: task 1 (each step: train step): period must be positive, got 0 steps"},
		{"a date", toy{Step: step, Epoch: loop.Date(1e18), Tests: []check{test}}, "loop: task 2 (every 2001-09-09T01:46:40Z: evaluation test): a date has no length to repeat: got 2001-09-09T01:46:40Z; use At or After"},
		{"no test at the start", toy{Step: step, TestAtStart: true}, "loop: task 1 (each step: train step): TestAtStart is set, but there are no Tests"},
		{"no test step", toy{Step: step, Tests: []check{testOn(1, nil)}}, "loop: task 2 (at end: evaluation test): task 1 (each step: test step): no function given"},
		{"no test data", toy{Step: step, Epoch: loop.Steps(1), Tests: []check{train.Test[int, int]("test", step, nil)}}, "loop: task 2 (every 1 step: evaluation test): no data given"},
		{"one name twice", toy{Step: step, Tests: []check{test, test}}, `loop: task 1 (each step: train step): two tests have the name "test": give each its own name`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.loop.Run(t.Context(), 0, upTo(4), loop.Until(loop.Steps(4)))
			require.EqualError(t, err, row.err)
		})
	}
}
