package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// By hand: the same counting, schedules, logs and bar, in a plain for.
func ExampleOver() {
	sum := 0
	for pass, err := range loop.Over(numbers(100), loop.Until(loop.Steps(10))) {
		if err != nil {
			fmt.Println(err)
			return
		}
		sum += pass.Batch
		if pass.Due(loop.Every(loop.Steps(5))) {
			fmt.Printf("after %s: %d\n", loop.Steps(pass.Elapsed.Steps), sum)
		}
	}
	fmt.Println(sum)
	// Output:
	// after 5 steps: 10
	// after 10 steps: 45
	// 45
}

func TestOver_errors(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		name, want string
		data       loop.Data[int]
		options    []loop.Option
		passes     int
	}{
		{name: "data", data: failing(2, boom), want: "loop: step 3: data: boom", passes: 2},
		{name: "no data", want: "loop: no data given"},
		{name: "bad option", data: numbers(3), options: []loop.Option{loop.Until(loop.Steps(-1))}, want: "loop: until: period must be zero or positive, got -1 steps"},
		{name: "a watcher", data: numbers(3), options: []loop.Option{callbacks.ProgressBar(&bytes.Buffer{})}, want: "loop: over: expected only Until and Continue without a history; call callbacks yourself, with Pass.Report"},
		{name: "when monitors look", data: numbers(3), options: []loop.Option{loop.MonitorsWhen(loop.EachStep)}, want: "loop: over: expected only Until and Continue"},
		{name: "from the past", data: numbers(3), options: []loop.Option{loop.Continue(loop.Elapsed{Steps: -1}, nil)}, want: "loop: continue: elapsed must not be negative, got "},
	} {
		t.Run(row.name, func(t *testing.T) {
			passes, got := 0, error(nil)
			for _, err := range loop.Over(row.data, row.options...) {
				if err != nil {
					require.NoError(t, got, "one error")
					got = err
					continue
				}
				passes++
			}
			require.ErrorContains(t, got, row.want)
			require.Equal(t, row.passes, passes)
		})
	}
}

func TestOver_untilZeroYieldsNothing(t *testing.T) {
	for range loop.Over(numbers(3), loop.Until(loop.Steps(0))) {
		t.Fatal("a pass")
	}
}

// D01: a run that is interrupted anywhere and resumed has the same step numbers, samples, history and due schedules as
// the whole run.
func TestFrom_resumedRunIsTheSameRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 40).Draw(t, "total")
		cut := rapid.IntRange(0, total).Draw(t, "cut")
		every := loop.Every(loop.Steps(rapid.Int64Range(1, int64(min(7, max(cut, 1)))).Draw(t, "every"))) // else it is unreachable in the first part
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), loop.On(every, loop.StepFunc(add)).Named("again"))
		skip := func(n int) loop.Data[int] {
			return func(yield func(int, error) bool) {
				for i := n; yield(i, nil); i++ {
				}
			}
		}
		whole, err := l.Run(t.Context(), 0, skip(0), loop.Until(loop.Steps(total)))
		require.NoError(t, err)
		first, err := l.Run(t.Context(), 0, skip(0), loop.Until(loop.Steps(cut)))
		require.NoError(t, err)
		second, err := l.Run(t.Context(), first.State, rest(skip(cut)), loop.Until(loop.Steps(total)), loop.Continue(first.Elapsed, first.History))
		require.NoError(t, err)
		require.Equal(t, whole.State, second.State)
		require.Equal(t, whole.Elapsed.Steps, second.Elapsed.Steps)
		require.Equal(t, whole.Elapsed.Samples, second.Elapsed.Samples)
		require.GreaterOrEqual(t, second.Elapsed.Time, first.Elapsed.Time)
		require.Equal(t, whole.History.Len(), second.History.Len())
		_, want, err := whole.History.Series("sum")
		require.NoError(t, err)
		at, got, err := second.History.Series("sum")
		require.NoError(t, err)
		require.Equal(t, want, got)
		for i, e := range at {
			require.EqualValues(t, i+1, e.Steps)
		}
	})
}

// D02: resuming at or beyond the end makes no turn.
func TestFrom_beyondTheEndMakesNoTurn(t *testing.T) {
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 7, numbers(3), loop.Until(loop.Steps(5)), loop.Continue(loop.Elapsed{Steps: 9}, nil))
	require.NoError(t, err)
	require.Equal(t, 7, result.State)
	require.Equal(t, loop.UntilReached, result.Reason)
	require.EqualValues(t, 9, result.Elapsed.Steps)
}
