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

// What nobody would call does not compile; Hooks with no function at all are an error.
func TestD07_whatHasNoHook(t *testing.T) {
	fine := func(context.Context, *turn) error { return nil }
	hooks := []train.Hooks[int, int]{{Begin: fine}, {Name: "deaf"}}
	testHooks := []train.TestHooks[int, int]{{}, {End: fine}}
	test := check{Step: step, Data: testOn(1), Hooks: testHooks}
	for _, row := range []struct {
		name string
		run  func() (loop.Result[int], error)
		err  string
	}{
		{"training", func() (loop.Result[int], error) {
			return toy{Step: step, Hooks: hooks}.Run(t.Context(), 3, upTo(1))
		}, "train: hooks 2: none of them is set"},
		{"nil as a method", func() (loop.Result[int], error) {
			var none func(int, context.Context, *turn) error
			hooks := []train.Hooks[int, int]{{EpochEnd: train.Method(none)}}
			return toy{Step: step, Hooks: hooks}.Run(t.Context(), 3, upTo(1))
		}, "train: hooks 1: none of them is set"},
		{"a test in a training", func() (loop.Result[int], error) {
			return toy{Step: step, Tests: []check{test}}.Run(t.Context(), 3, upTo(1))
		}, "train: test: hooks 1: none of them is set"},
		{"a test on a schedule", func() (loop.Result[int], error) {
			return toy{Step: step, Tasks: []loop.Task[int, int]{test.On(loop.AtEnd)}}.Run(t.Context(), 3, upTo(1))
		}, "loop: task 2 (at end: evaluation test): hooks 1: none of them is set"},
		{"a test", func() (loop.Result[int], error) {
			tested, err := test.Run(t.Context(), 3)
			return tested.Result, err
		}, "train: test: hooks 1: none of them is set"},
		{"predicting", func() (loop.Result[int], error) {
			predict := train.Predict[int, int, int]{Hooks: []train.PredictHooks[int, int]{{AfterStep: fine}, {}},
				Step: func(context.Context, int, int) (int, error) { return 0, nil }}
			return predict.Run(t.Context(), 3, upTo(1), func(context.Context, int) error { return nil })
		}, "train: hooks 2: none of them is set"},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := row.run()
			require.EqualError(t, err, row.err)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 3, result.State)
			require.NotNil(t, result.History)
		})
	}
	tests := []check{{Step: step, Data: testOn(1), Hooks: testHooks[1:]}}
	_, err := toy{Step: step, Hooks: hooks[:1], Tests: tests}.Run(t.Context(), 3, upTo(1))
	require.NoError(t, err)
	t.Log("D07: 6 hooks that nobody would have called refused")
}

const callbacks = `package callbacks

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
		{"a hook of a test", `train.TestHooks[int, int]{}`, "cannot use train.TestHooks"},
		{"a hook of predicting", `train.PredictHooks[int, int]{}`, "cannot use train.PredictHooks"},
	} {
		t.Run(row.name, func(t *testing.T) {
			file, err := parser.ParseFile(files, row.name, fmt.Sprintf(callbacks, row.hooks), 0)
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
	test := check{Step: step, Data: testOn(1)}
	for _, row := range []struct {
		name string
		loop toy
		err  string
	}{
		{"no step", toy{Tests: []check{test}}, "train: no training step: set Step, or use Of with a state that has a method TrainStep"},
		{"zero epoch", toy{Step: step, Epoch: loop.Steps(0)}, "train: epoch: period must be positive, got 0 steps"},
		{"a date", toy{Step: step, Epoch: loop.Date(1e18)}, "train: epoch: a date has no length to repeat: got 2001-09-09T01:46:40Z; use At or After"},
		{"no test at the start", toy{Step: step, TestAtStart: true}, "train: TestAtStart is set, but there are no Tests"},
		{"no test step", toy{Step: step, Tests: []check{{Data: testOn(1)}}}, "train: test: no test step: set Step, or use TestOf with a state that has a method TestStep"},
		{"no test data", toy{Step: step, Epoch: loop.Steps(1), Tests: []check{{Step: step}}}, "loop: task 2 (every 1 step: evaluation test): no data given"},
		{"one name twice", toy{Step: step, Tests: []check{test, test}}, `train: two tests have the name "test": one would hide the other's logs`},
		{"an epoch that never ends", toy{Step: step, Epoch: loop.Steps(5), Tests: []check{test}},
			"loop: task 2 (every 5 steps: evaluation test): never due in 4 steps; leave it out, or give it AndAtEnd"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.loop.Run(t.Context(), 0, upTo(4), loop.Until(loop.Steps(4)))
			require.EqualError(t, err, row.err)
		})
	}
}
