package train_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// saver has two hooks of training and one of tests.
type saver struct{ trace *tracer }

func (s *saver) EpochEnd(ctx context.Context, turn *turn) error {
	return s.trace.hook("saver epoch end")(ctx, turn)
}
func (s *saver) TrainEnd(ctx context.Context, turn *turn) error {
	return s.trace.hook("saver train end")(ctx, turn)
}
func (s *saver) TestEnd(ctx context.Context, turn *turn) error {
	return s.trace.hook("saver test end")(ctx, turn)
}

func (s *saver) hooks() hooks {
	return hooks{EpochEnd: s.EpochEnd, End: s.TrainEnd}
}
func (s *saver) testHooks() hooks {
	return hooks{End: s.TestEnd}
}

// all has all hooks, and counts their calls.
type all map[string]int

func (a all) note(name string) error { a[name]++; return nil }

func (a all) TrainBegin(context.Context, *turn) error        { return a.note("TrainBegin") }
func (a all) TrainBatchBegin(context.Context, *turn) error   { return a.note("TrainBatchBegin") }
func (a all) AfterTrainStep(context.Context, *turn) error    { return a.note("AfterTrainStep") }
func (a all) AfterResetStep(context.Context, *turn) error    { return a.note("AfterResetStep") }
func (a all) EpochEnd(context.Context, *turn) error          { return a.note("EpochEnd") }
func (a all) TrainBatchEnd(context.Context, *turn) error     { return a.note("TrainBatchEnd") }
func (a all) TrainEnd(context.Context, *turn) error          { return a.note("TrainEnd") }
func (a all) TestBegin(context.Context, *turn) error         { return a.note("TestBegin") }
func (a all) TestBatchBegin(context.Context, *turn) error    { return a.note("TestBatchBegin") }
func (a all) AfterTestStep(context.Context, *turn) error     { return a.note("AfterTestStep") }
func (a all) TestBatchEnd(context.Context, *turn) error      { return a.note("TestBatchEnd") }
func (a all) TestEnd(context.Context, *turn) error           { return a.note("TestEnd") }
func (a all) PredictBegin(context.Context, *turn) error      { return a.note("PredictBegin") }
func (a all) PredictBatchBegin(context.Context, *turn) error { return a.note("PredictBatchBegin") }
func (a all) AfterPredictStep(context.Context, *turn) error  { return a.note("AfterPredictStep") }
func (a all) PredictBatchEnd(context.Context, *turn) error   { return a.note("PredictBatchEnd") }
func (a all) PredictEnd(context.Context, *turn) error        { return a.note("PredictEnd") }

func (a all) hooks() hooks {
	return hooks{Begin: a.TrainBegin, BatchBegin: a.TrainBatchBegin, AfterStep: a.AfterTrainStep,
		AfterReset: a.AfterResetStep, EpochEnd: a.EpochEnd, BatchEnd: a.TrainBatchEnd, End: a.TrainEnd}
}

func (a all) testHooks() hooks {
	return hooks{Begin: a.TestBegin, AfterReset: a.AfterResetStep, BatchBegin: a.TestBatchBegin,
		AfterStep: a.AfterTestStep, BatchEnd: a.TestBatchEnd, End: a.TestEnd}
}

func (a all) predictHooks() hooks {
	return hooks{Begin: a.PredictBegin, BatchBegin: a.PredictBatchBegin,
		AfterStep: a.AfterPredictStep, BatchEnd: a.PredictBatchEnd, End: a.PredictEnd}
}

// endingAt steps as sum does, and ends the run in a way of its own in the step of one batch.
func endingAt(batch int, end func() error) loop.Stepper[int, int] {
	return loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
		next, logs, _ := sum(ctx, s, b)
		if b == batch {
			return next, logs, end()
		}
		return next, logs, nil
	})
}

// This is the table of the package's documentation.
func TestHooks_endings(t *testing.T) {
	boom := errors.New("boom")
	fails, stops := func() error { return boom }, func() error { return loop.ErrStop }
	type counts map[string]int
	for _, row := range []struct {
		name     string
		data     int
		step     func(cancel func()) loop.Stepper[int, int]
		test     func(cancel func()) loop.Stepper[int, int]
		whole    bool // the run is one epoch; else epochs have 2 steps
		options  []loop.Option
		reason   loop.Reason
		want     counts
		testWant counts
	}{
		{name: "data ends", data: 5, reason: loop.DataEnded,
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 5, "AfterTrainStep": 5, "AfterResetStep": 4, "EpochEnd": 2, "TrainBatchEnd": 5, "TrainEnd": 1},
			testWant: counts{"TestBegin": 2, "TestBatchBegin": 6, "AfterTestStep": 6, "TestBatchEnd": 6, "TestEnd": 2}},
		{name: "until", data: 9, options: []loop.Option{loop.Until(loop.Steps(4))}, reason: loop.UntilReached,
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 4, "AfterTrainStep": 4, "AfterResetStep": 4, "EpochEnd": 2, "TrainBatchEnd": 4, "TrainEnd": 1},
			testWant: counts{"TestBegin": 2, "TestBatchBegin": 6, "AfterTestStep": 6, "TestBatchEnd": 6, "TestEnd": 2}},
		{name: "until zero", data: 9, options: []loop.Option{loop.Until(loop.Steps(0))}, reason: loop.UntilReached, want: counts{}},
		{name: "stopped", data: 9, reason: loop.Stopped,
			step:     func(func()) loop.Stepper[int, int] { return endingAt(4, stops) },
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 4, "AfterTrainStep": 4, "AfterResetStep": 4, "EpochEnd": 2, "TrainBatchEnd": 4, "TrainEnd": 1},
			testWant: counts{"TestBegin": 2, "TestBatchBegin": 6, "AfterTestStep": 6, "TestBatchEnd": 6, "TestEnd": 2}},
		{name: "cancelled", data: 9, reason: loop.Cancelled,
			step: func(cancel func()) loop.Stepper[int, int] {
				return endingAt(3, func() error { cancel(); return nil })
			},
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 3, "AfterTrainStep": 3, "AfterResetStep": 2, "EpochEnd": 1, "TrainBatchEnd": 3},
			testWant: counts{"TestBegin": 1, "TestBatchBegin": 3, "AfterTestStep": 3, "TestBatchEnd": 3, "TestEnd": 1}},
		{name: "cancelled in a test", data: 9, reason: loop.Cancelled,
			test: func(cancel func()) loop.Stepper[int, int] {
				return endingAt(2, func() error { cancel(); return nil })
			},
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 2, "AfterTrainStep": 2, "AfterResetStep": 2, "TrainBatchEnd": 1},
			testWant: counts{"TestBegin": 1, "TestBatchBegin": 2, "AfterTestStep": 2, "TestBatchEnd": 2}},
		{name: "failed", data: 9, reason: loop.Failed,
			step:     func(func()) loop.Stepper[int, int] { return endingAt(3, fails) },
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 3, "AfterTrainStep": 2, "AfterResetStep": 2, "EpochEnd": 1, "TrainBatchEnd": 2},
			testWant: counts{"TestBegin": 1, "TestBatchBegin": 3, "AfterTestStep": 3, "TestBatchEnd": 3, "TestEnd": 1}},
		{name: "failed in a test", data: 9, reason: loop.Failed,
			test:     func(func()) loop.Stepper[int, int] { return endingAt(2, fails) },
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 2, "AfterTrainStep": 2, "AfterResetStep": 2, "TrainBatchEnd": 1},
			testWant: counts{"TestBegin": 1, "TestBatchBegin": 2, "AfterTestStep": 1, "TestBatchEnd": 1}},
		{name: "a test stops itself alone", data: 2, reason: loop.DataEnded,
			test:     func(func()) loop.Stepper[int, int] { return endingAt(2, stops) },
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 2, "AfterTrainStep": 2, "AfterResetStep": 2, "EpochEnd": 1, "TrainBatchEnd": 2, "TrainEnd": 1},
			testWant: counts{"TestBegin": 1, "TestBatchBegin": 2, "AfterTestStep": 2, "TestBatchEnd": 2, "TestEnd": 1}},
		{name: "no data", reason: loop.DataEnded, want: counts{}},
		{name: "one epoch, data ends", data: 3, whole: true, reason: loop.DataEnded,
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 3, "AfterTrainStep": 3, "AfterResetStep": 2, "EpochEnd": 1, "TrainBatchEnd": 3, "TrainEnd": 1},
			testWant: counts{"TestBegin": 1, "TestBatchBegin": 3, "AfterTestStep": 3, "TestBatchEnd": 3, "TestEnd": 1}},
		{name: "one epoch, stopped", data: 9, whole: true, reason: loop.Stopped,
			step:     func(func()) loop.Stepper[int, int] { return endingAt(3, stops) },
			want:     counts{"TrainBegin": 1, "TrainBatchBegin": 3, "AfterTrainStep": 3, "AfterResetStep": 2, "EpochEnd": 1, "TrainBatchEnd": 3, "TrainEnd": 1},
			testWant: counts{"TestBegin": 1, "TestBatchBegin": 3, "AfterTestStep": 3, "TestBatchEnd": 3, "TestEnd": 1}},
		{name: "one epoch, cancelled", data: 9, whole: true, reason: loop.Cancelled,
			step: func(cancel func()) loop.Stepper[int, int] {
				return endingAt(3, func() error { cancel(); return nil })
			},
			want: counts{"TrainBegin": 1, "TrainBatchBegin": 3, "AfterTrainStep": 3, "TrainBatchEnd": 3}},
		{name: "one epoch, failed", data: 9, whole: true, reason: loop.Failed,
			step: func(func()) loop.Stepper[int, int] { return endingAt(3, fails) },
			want: counts{"TrainBegin": 1, "TrainBatchBegin": 3, "AfterTrainStep": 2, "TrainBatchEnd": 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := all{}
			l := toy{Step: step, Epoch: loop.Steps(2), Hooks: []hooks{got.hooks()}}
			testStep := loop.Stepper[int, int](step)
			if row.step != nil {
				l.Step = row.step(cancel)
			}
			if row.test != nil {
				testStep = row.test(cancel)
			}
			l.Tests = []check{testOn(3, testStep, got.testHooks())}
			if row.whole {
				l.Epoch = nil
			}
			ended := 0
			end := attend("end", loop.EachStep, func() loop.Attendant { return attendant{func(loop.Ending) { ended++ }} })
			result, err := l.Run(ctx, 0, upTo(row.data), append(row.options, end)...)
			require.Equal(t, row.reason, result.Reason, "%s: %v", result.Reason, err)
			require.Equal(t, row.reason == loop.Failed || row.reason == loop.Cancelled, err != nil)
			want := all{}
			for name, n := range row.want {
				want[name] = n
			}
			for name, n := range row.testWant {
				want[name] = n
			}
			require.Equal(t, want, got)
			require.Equal(t, 1, ended, "an attendant hears of each end")
		})
	}
}

// One object can have the hooks of tests and of predictions.
func TestHooks_ofTestsAndPredictions(t *testing.T) {
	got := all{}
	_, _, err := testOn(2, step, got.testHooks()).Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, all{"TestBegin": 1, "AfterResetStep": 1, "TestBatchBegin": 2, "AfterTestStep": 2, "TestBatchEnd": 2, "TestEnd": 1}, got)

	for _, row := range []struct {
		name string
		data int
		stop bool
		fail error
		want all
	}{
		{name: "data ends", data: 2, want: all{"PredictBegin": 1, "PredictBatchBegin": 2, "AfterPredictStep": 2, "PredictBatchEnd": 2, "PredictEnd": 1}},
		{name: "stopped", data: 9, stop: true, want: all{"PredictBegin": 1, "PredictBatchBegin": 2, "AfterPredictStep": 2, "PredictBatchEnd": 2, "PredictEnd": 1}},
		{name: "failed", data: 9, fail: errors.New("boom"), want: all{"PredictBegin": 1, "PredictBatchBegin": 2, "AfterPredictStep": 1, "PredictBatchEnd": 1}},
		{name: "no data", want: all{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := all{}
			p := train.Predict[int, int, int]{Hooks: []hooks{got.predictHooks()}}
			p.Step = func(_ context.Context, s, b int) (int, error) {
				if b == 2 {
					return s + b, row.fail
				}
				return s + b, nil
			}
			_, err := p.Run(t.Context(), 0, upTo(row.data), func(_ context.Context, o int) error {
				if o == 2 && row.stop {
					return loop.ErrStop
				}
				return nil
			})
			require.ErrorIs(t, err, row.fail)
			require.Equal(t, row.want, got)
		})
	}
}

func TestHooks_orderOfTheirOwners(t *testing.T) {
	var trace tracer
	own, tests := (&saver{&trace}).hooks(), (&saver{&trace}).testHooks()
	l := toy{Step: step, Epoch: loop.Steps(2), Hooks: []hooks{trace.hooks(), own, own},
		Tests: []check{testOn(1, step, trace.testHooks(), tests, tests, tests)}}
	_, err := l.Run(t.Context(), 0, upTo(2))
	require.NoError(t, err)
	ends := slices.DeleteFunc(trace, func(s string) bool {
		return !slices.Contains([]string{"epoch end@2", "saver epoch end@2", "train end@2", "saver train end@2", "test end@1", "saver test end@1"}, s)
	})
	require.Equal(t, tracer{
		"test end@1", "saver test end@1", "saver test end@1", "saver test end@1",
		"epoch end@2", "saver epoch end@2", "saver epoch end@2",
		"train end@2", "saver train end@2", "saver train end@2",
	}, ends)
}

// Each hook of training appears in an error with its place, and with its name or number if there are several.
func TestHooks_errorsNameThem(t *testing.T) {
	boom := errors.New("boom")
	fail, fine := func(context.Context, *turn) error { return boom }, func(context.Context, *turn) error { return nil }
	reset := func(context.Context, int) (int, error) { return 0, boom }
	type own = hooks
	hooks := func(list ...own) func(*toy) { return func(l *toy) { l.Hooks = list } }
	test := func(step loop.Stepper[int, int], hooks ...own) func(*toy) {
		return func(l *toy) { l.Tests[0] = testOn(2, step, hooks...) }
	}
	for _, row := range []struct {
		name string
		set  func(*toy)
		err  string
	}{
		{"train begin", hooks(own{Begin: fail}), "loop: step 0: at start: train begin: boom"},
		{"batch begin", hooks(own{BatchBegin: fail}), "loop: step 1: each step: train batch begin: boom"},
		{"step", func(l *toy) { l.Step = endingAt(2, func() error { return boom }) }, "loop: step 2: each step: train step: boom"},
		{"after step", hooks(own{AfterStep: fail}), "loop: step 1: each step: after train step: boom"},
		{"reset", func(l *toy) { l.Reset = reset }, "loop: step 3: every 3 steps: reset: boom"},
		{"after reset", hooks(own{AfterReset: fail}), "loop: step 3: every 3 steps: after reset: boom"},
		{"epoch end", hooks(own{EpochEnd: fail}), "loop: step 3: every 3 steps: epoch end: boom"},
		{"batch end", hooks(own{BatchEnd: fail}), "loop: step 1: each step: train batch end: boom"},
		{"train end", hooks(own{End: fail}), "loop: step 4: at end: train end: boom"},
		{"a callback", hooks(own{Name: "train_test.broken", EpochEnd: broken{boom}.EpochEnd}),
			"loop: step 3: every 3 steps: epoch end (train_test.broken): boom"},
		{"the state", hooks(own{Begin: fine, EpochEnd: fine}, own{Name: "state", Begin: fail}),
			"loop: step 0: at start: train begin (state): boom"},
		{"the second", hooks(own{Name: "first", EpochEnd: fine}, own{EpochEnd: fail}),
			"loop: step 3: every 3 steps: epoch end (hooks 2): boom"},
		{"a test's second", test(step, own{Begin: fine}, own{End: fail}),
			"loop: step 3: every 3 steps: evaluation test: step 2: at end: test end (hooks 2): boom"},
		{"a test's begin", test(step, own{Begin: fail}),
			"loop: step 3: every 3 steps: evaluation test: step 0: at start: test begin: boom"},
		{"a test's step", test(endingAt(2, func() error { return boom })),
			"loop: step 3: every 3 steps: evaluation test: step 2: each step: test step: boom"},
		{"a test's reset", func(l *toy) { l.Tests[0].Reset = reset }, "loop: step 3: every 3 steps: evaluation test: reset: boom"},
		{"a test's data", func(l *toy) {
			l.Tests[0].Data = loop.Data[int](func(yield func(int, error) bool) { yield(0, boom) })
		}, "loop: step 3: every 3 steps: evaluation test: step 1: data: boom"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := toy{Step: step, Epoch: loop.Steps(3), Tests: []check{testOn(2, step)}}
			row.set(&l)
			_, err := l.Run(t.Context(), 0, upTo(4))
			require.EqualError(t, err, row.err)
			require.ErrorIs(t, err, boom)
		})
	}
}

type broken struct{ err error }

func (b broken) EpochEnd(context.Context, *turn) error { return b.err }

func TestHooks_changeStateAndLogs(t *testing.T) {
	l := toy{Step: step, Hooks: []hooks{{AfterStep: func(_ context.Context, turn *turn) error {
		s, err := turn.Logs.Float("sum")
		turn.Logs.Metric("twice", 2*s)
		turn.State += 100
		return err
	}}}}
	result, err := l.Run(t.Context(), 0, upTo(2))
	require.NoError(t, err)
	require.Equal(t, 203, result.State)
	_, twice, err := result.History.Series("twice")
	require.NoError(t, err)
	require.Equal(t, []float64{2, 206}, twice)
}

// A hook that fails leaves the state of before; one that stops has done its work.
func TestHooks_stateOfOneThatEnds(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		err   error
		state int
	}{{boom, 3}, {loop.ErrStop, 103}, {fmt.Errorf("enough: %w", loop.ErrStop), 103}} {
		l := toy{Step: step, Hooks: []hooks{{AfterStep: func(_ context.Context, turn *turn) error {
			if turn.Batch == 2 {
				turn.State += 100
				return row.err
			}
			return nil
		}}}}
		result, err := l.Run(t.Context(), 0, upTo(5))
		require.Equal(t, row.state, result.State)
		require.Equal(t, row.err == boom, err != nil)
		require.EqualValues(t, 2, result.Elapsed.Steps, "the step is in the state")
	}
}

// attend is a callback that makes an attendant for each run.
func attend(name string, when loop.Schedule, start func() loop.Attendant) loop.Callback {
	return loop.Callback{Name: name, When: when, Start: func(loop.Beginning) (loop.Attendant, error) { return start(), nil }}
}
