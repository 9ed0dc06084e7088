package outer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train/outer"
)

func TestOuter_failures(t *testing.T) {
	boom := errors.New("boom")
	fail := func(context.Context, border) error { return boom }
	failing := loop.StepFunc[int, int](func(_ context.Context, s, b int) (int, loop.Logs, error) {
		if b == 2 {
			return 0, loop.Logs{}, boom
		}
		return s + 1, loop.Logs{}, nil
	})
	for _, row := range []struct {
		name  string
		toy   toy
		state int
		err   string
	}{
		{"a step", toy{Train: failing}, 2, "loop: step 3: each step: boom"},
		{"a begin action", toy{Begin: []action{{Name: "warm", Every: 2, Do: fail}}}, 10, "loop: step 11: begin of inner loop: action warm: boom"},
		{"an end action", toy{End: []action{{Name: "save", Every: 2, Do: fail}}}, 20, "loop: step 20: every 20 steps, at end: action save: boom"},
		{"an evaluation", toy{Evals: []eval{{Test: test{Name: "test", Step: failing, Data: evalData(5)}}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: step 3: each step: test step: boom"},
		{"data of an evaluation", toy{Evals: []eval{{Test: test{Name: "test", Step: counting, Data: func(context.Context) (loop.Data[int], error) { return nil, boom }}}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: data: boom"},
		{"an action of an evaluation", toy{Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1)}, End: []action{
			{Do: func(context.Context, border) error { return loop.ErrStop }}, {Name: "log", Do: fail}}}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: action log: boom"},
		{"a panic in When", toy{Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1)}, When: func(outer.Inner) bool { panic(boom) }}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: panic: boom"},
		{"the data", toy{Data: func(context.Context, loop.Elapsed) (loop.Data[int], error) { return nil, boom }}, 0, "loop: step 1: data: boom"},
		{"a panic of the data", toy{Data: func(context.Context, loop.Elapsed) (loop.Data[int], error) { panic(boom) }}, 0, "loop: step 1: data: panic: boom"},
		{"Close", toy{TotalSteps: 10, Begin: []action{{Name: "open", Do: func(context.Context, border) error { return nil }, Close: func(context.Context) error { return boom }}}}, 10,
			"loop: at the end: step 10: at end: action open: boom"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := row.toy
			if o.Train == nil {
				o.Train = counting
			}
			if o.Data == nil {
				o.Data = endless(nil)
			}
			o.TotalSteps, o.LoopSteps, o.Dir = cmp.Or(o.TotalSteps, outer.AllData), 10, t.TempDir()
			closed := 0
			o.End = append(o.End, action{Do: func(context.Context, border) error { return nil }, Close: func(context.Context) error { closed++; return nil }})
			result, err := o.Run(t.Context(), 0)
			require.EqualError(t, err, row.err)
			require.ErrorIs(t, err, boom)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, row.state, result.State)
			require.EqualValues(t, row.state, result.Elapsed.Steps)
			require.Equal(t, 1, closed)
			require.EqualValues(t, row.state/10, result.Loops)
			require.Equal(t, result.Last.Number > 0, result.Last.Outputs().Len() > 0)
			require.NoFileExists(t, filepath.Join(o.Dir, outer.StoppedFile))
		})
	}
}

func TestOuter_cancelled(t *testing.T) {
	cause := errors.New("enough of this")
	for _, row := range []struct {
		name string
		eval bool
		step int
	}{{"in training", false, 7}, {"in an evaluation", true, 10}} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			cancelling := loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
				if b == 6 {
					cancel(cause)
				}
				return counting(ctx, s, b)
			})
			o := toy{Train: counting, Data: endless(nil), TotalSteps: outer.AllData, LoopSteps: 10, Dir: t.TempDir()}
			if row.eval {
				o.Evals = []eval{{Test: test{Name: "test", Step: cancelling, Data: evalData(100)}}}
			} else {
				o.Train = cancelling
			}
			ended := 0
			o.End = []action{{Do: func(context.Context, border) error { ended++; return nil }}}
			result, err := o.Run(ctx, 0)
			require.ErrorIs(t, err, cause)
			require.Equal(t, loop.Cancelled, result.Reason)
			require.Equal(t, row.step, result.State)
			require.EqualValues(t, row.step, result.Elapsed.Steps)
			require.Zero(t, ended)
			require.NoFileExists(t, filepath.Join(o.Dir, outer.StoppedFile))
		})
	}
}

func TestD15_aStopGivesTheStateAndTheReason(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "at the end")
	closed := false
	o := toy{Train: counting, Data: endless(nil), TotalSteps: outer.AllData, LoopSteps: 10, Dir: dir, End: []action{{Name: "stopper", Every: 2,
		Do:    func(context.Context, border) error { return fmt.Errorf("best loss 0.5\nat step 1: %w", loop.ErrStop) },
		Close: func(context.Context) error { closed = true; return nil }}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 20, result.State)
	require.Equal(t, loop.Stopped, result.Reason)
	require.True(t, closed)
	text, err := os.ReadFile(filepath.Join(dir, outer.StoppedFile))
	require.NoError(t, err)
	require.Equal(t, "stopped after 20 steps: loop: step 20: every 20 steps, at end: action stopper: best loss 0.5; at step 1: stop\n", string(text))
	t.Logf("%s", text)
}

func TestOuter_stoppedFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, outer.StoppedFile)
	require.NoError(t, os.WriteFile(file, []byte("of an earlier run"), 0o666))
	require.NoError(t, syscall.Mkfifo(file+".tmp", 0o600), "writing into it would wait for ever")
	there := true
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 10, Dir: dir, Begin: []action{{Do: func(context.Context, border) error {
		_, err := os.Stat(file)
		there = err == nil
		return nil
	}}}}
	_, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.False(t, there, "while the training goes on")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "until reached after 10 steps\n", string(text))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	o.Dir = filepath.Join(file, "below a file")
	result, err := o.Run(t.Context(), 3)
	require.ErrorContains(t, err, "outer loop: ")
	require.Equal(t, loop.Failed, result.Reason)
}

func TestOuter_refusesBadSettings(t *testing.T) {
	nothing := func(context.Context, border) error { return nil }
	one := eval{Test: test{Name: "test", Step: counting, Data: evalData(1)}}
	with := func(change func(*toy)) toy {
		o := toy{Train: counting, Data: endless(nil), TotalSteps: 100, LoopSteps: 10}
		change(&o)
		return o
	}
	for _, row := range []struct {
		name    string
		toy     toy
		options []loop.Option
		err     string
	}{
		{"nothing given", toy{}, nil, "outer: no Train step given\nno Data given"},
		{"negative", with(func(o *toy) { o.TotalSteps = -2 }), nil, "outer: want TotalSteps and LoopSteps not negative, got -2 and 10"},
		{"no end", with(func(o *toy) { o.TotalSteps = 0 }), nil,
			"outer loop: no end given: want TotalSteps, loop.Until among the options, or TotalSteps outer.AllData where the data ends the training"},
		{"two ends", with(func(*toy) {}), []loop.Option{loop.Until(loop.Steps(5))}, "outer loop: the end is TotalSteps, 100 steps, and loop.Until, 5 steps: want one of the two"},
		{"a bad option", with(func(*toy) {}), []loop.Option{loop.Limit(0)}, "loop: limit: rows must be positive, got 0"},
		{"no name", with(func(o *toy) { o.Evals = []eval{{Test: test{Step: counting, Data: evalData(1)}}} }), nil, `outer: evaluation 1 (): want a name that no other has, got ""`},
		{"one name twice", with(func(o *toy) { o.Evals = []eval{one, one} }), nil, `outer: evaluation 2 (test): want a name that no other has, got "test"`},
		{"an empty evaluation", with(func(o *toy) { o.Evals = []eval{{Test: test{Name: "x", Length: loop.Steps(-1)}, Every: -2}} }), nil,
			"outer: evaluation 1 (x): no test step: set Step, or use TestOf with a state that has a method TestStep\nno data given\n" +
				"length: period must be positive, got -1 steps\nwant Every not negative, got -2"},
		{"an action with nothing to do", with(func(o *toy) { o.End = []action{{Name: "a", Every: -1}} }), nil,
			"outer: action 1 (a): no function given\naction 1 (a): Every must not be negative, got -1"},
		{"no checkpoints to save to", with(func(*toy) {}), []loop.Option{(*checkpoint.Folder)(nil).Resume()}, "resume: no folder given"},
		{"steps in the place of inner loops", with(func(o *toy) { o.End = []action{{Name: "save", Every: 100, Do: nothing}} }), nil,
			"outer loop: action save: never due: every 100 inner loops, and the training has 10"},
		{"an interval that is too long", with(func(o *toy) { one := one; one.Every = 11; o.Evals = []eval{one} }), nil,
			"outer loop: evaluation test: never due: every 11 inner loops, and the training has 10"},
		{"one inner loop", toy{Train: counting, Data: endless(nil), TotalSteps: outer.AllData, Begin: []action{{Every: 2, Do: nothing}}}, nil,
			"outer loop: action: never due: every 2 inner loops, and the training has 1"},
		{"an aggregation", with(func(o *toy) { o.Aggregate = loop.Aggregations{loop.Losses: {}} }), nil, "no function given"},
		{"data that is nil", with(func(o *toy) {
			o.Data = func(context.Context, loop.Elapsed) (loop.Data[int], error) { return nil, nil }
		}), nil, "loop: step 1: data: no data given: Data gave nil"},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := row.toy.Run(t.Context(), 42, row.options...)
			require.ErrorContains(t, err, row.err)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 42, result.State)
			require.NotNil(t, result.History)
		})
	}
}

// One value serves any number of runs, and its lists stay as they are.
func TestOuter_isAValue(t *testing.T) {
	var loops []string
	options := make([]loop.Option, 1, 5)
	options[0] = loop.Limit(100)
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 20, LoopSteps: 10, End: []action{noting(&loops)},
		Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1)}}}}
	for range 2 {
		result, err := o.Run(t.Context(), 0, options...)
		require.NoError(t, err)
		require.Equal(t, 20, result.State)
	}
	require.Equal(t, []string{"1:10", "2:10", "1:10", "2:10"}, loops)
	require.Nil(t, options[:2][1])
}
