package train_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

type (
	deaf      struct{}
	misshapen struct{}
	epochs    struct{}
	tester    struct{}
	byPointer struct{}
	predictor struct{}
	resetter  struct{}
	other     struct{}
)

func (misshapen) EpochEnd() error                                     { return nil }
func (misshapen) TrainEnd(context.Context, *turn) error               { return nil }
func (epochs) EpochBegin(context.Context, *turn) error                { return nil }
func (epochs) EpochEnd(context.Context, *turn) error                  { return nil }
func (tester) TestEnd(context.Context, *turn) error                   { return nil }
func (*byPointer) TrainEnd(context.Context, *turn) error              { return nil }
func (predictor) PredictEnd(context.Context, *turn) error             { return nil }
func (resetter) AfterResetStep(context.Context, *turn) error          { return nil }
func deafFunc(context.Context, int, int) (int, error)                 { return 0, nil }
func (other) EpochEnd(context.Context, *loop.Turn[string, int]) error { return nil }

// What nobody would call must not be passed over.
func TestD07_whatHasNoHook(t *testing.T) {
	tested := []check{{Step: step, Data: testOn(1)}}
	refused := 0
	for _, row := range []struct {
		name     string
		callback any
		tests    []check
		err      string
	}{
		{name: "no hook", callback: deaf{}, err: "train_test.deaf has no hook of training, nor of a test that this loop has: see the table of package train for their names"},
		{name: "a function", callback: deafFunc, err: "func(context.Context, int, int) (int, error) has no hook of training, nor of a test that this loop has: see the table of package train for their names"},
		{name: "an option", callback: loop.Until(loop.Steps(1)), err: "it is a loop.Option: give it to Run"},
		{name: "nil", err: "it is nil"},
		{name: "another form", callback: misshapen{}, err: "method EpochEnd of train_test.misshapen is a func() error, but must be a func(context.Context, *loop.Turn[int,int]) error"},
		{name: "other types", callback: other{}, err: "method EpochEnd of train_test.other is a func(context.Context, *loop.Turn[string,int]) error, but must be a func(context.Context, *loop.Turn[int,int]) error"},
		{name: "a value with methods of its pointer", callback: byPointer{}, err: "method TrainEnd of train_test.byPointer has a pointer receiver: it is not a method of the value"},
		{name: "the begin of an epoch", callback: epochs{}, err: "method EpochBegin of train_test.epochs: there is no such hook; an epoch begins at TrainBegin, or where EpochEnd was"},
		{name: "a test hook without a test", callback: tester{}, err: "train_test.tester has no hook of training, nor of a test that this loop has: see the table of package train for their names"},
		{name: "a test hook with a test", callback: tester{}, tests: tested},
		{name: "a hook of predicting", callback: predictor{}, tests: tested, err: "train_test.predictor has no hook of training, nor of a test that this loop has: see the table of package train for their names"},
		{name: "by its pointer", callback: &byPointer{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := toy{Step: step, Callbacks: []any{all{}, row.callback}, Tests: row.tests}.Run(t.Context(), 3, upTo(1))
			if row.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "train: callback 2: "+row.err)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 3, result.State)
			require.NotNil(t, result.History)
			refused++
		})
	}
	_, err := check{Step: step, Data: testOn(1), Callbacks: []any{predictor{}}}.Run(t.Context(), 0)
	require.EqualError(t, err, "train: test: callback 1: train_test.predictor has no hook of a test: see the table of package train for their names")
	predict := train.Predict[int, int, int]{Step: func(context.Context, int, int) (int, error) { return 0, nil }, Callbacks: []any{tester{}}}
	_, err = train.Collect(predict.All(t.Context(), 0, upTo(1)))
	require.EqualError(t, err, "train: callback 1: train_test.tester has no hook of predicting: see the table of package train for their names")
	_, err = check{Step: step, Data: testOn(1), Callbacks: []any{resetter{}}}.Run(t.Context(), 0)
	require.NoError(t, err)
	t.Logf("D07: %d callbacks that nobody would have called refused", refused+2)
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
