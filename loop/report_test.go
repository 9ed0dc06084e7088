package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// Latest has the logs of earlier iterations and of the start for callbacks; Ciclo calls these the accumulated logs.
func TestReport_latest(t *testing.T) {
	type seen struct {
		step                    int64
		evaluated, sum, evalNow float64
	}
	var got []seen
	watch := func(_ context.Context, r loop.Report) error {
		evaluated, err := r.Latest.Float("evaluated")
		sum, sumErr := r.Latest.Float("metrics.sum")
		now, nowErr := r.Logs.Float("evaluated")
		if nowErr != nil {
			now = -1
		}
		got = append(got, seen{r.Elapsed.Steps, evaluated, sum, now})
		return errors.Join(err, sumErr)
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), loop.On(loop.Every(loop.Steps(2)).AndAtStart(), loop.StepFunc(evaluation)))
	_, err := l.Run(t.Context(), 0, numbers(4), loop.Watch(loop.EachStep, watch))
	require.NoError(t, err)
	require.Equal(t, []seen{{1, 0, 0, -1}, {2, 1, 1, 1}, {3, 1, 3, -1}, {4, 6, 6, 6}}, got)
}

func TestReport_state(t *testing.T) {
	var states []any
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 100, numbers(3), loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
		states = append(states, r.State())
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, []any{100, 101, 103}, states)

	require.Nil(t, loop.Report{}.State())
	state := 5
	byHand := loop.Report{}.With(&state)
	state = 6
	require.Equal(t, 6, byHand.State())
}

func TestWatchEntry_onlyWhereItWasLogged(t *testing.T) {
	var at []int64
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), loop.On(loop.Every(loop.Steps(3)).AndAtStart().AndAtEnd(), loop.StepFunc(evaluation)))
	_, err := l.Run(t.Context(), 0, numbers(7), loop.WatchEntry("metrics.evaluated", func(_ context.Context, r loop.Report) error {
		_, err := r.Logs.Float("evaluated")
		at = append(at, r.Elapsed.Steps)
		return err
	}))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 3, 6, 7}, at)
}

func TestWatchEntry_aNameThatNothingLogs(t *testing.T) {
	train := loop.On(loop.EachStep, loop.StepFunc(add))
	test := loop.On(loop.Every(loop.Steps(3)), loop.StepFunc(evaluation))
	fail := func(context.Context, loop.Report) error { return errors.New("called") }
	for _, row := range []struct {
		name, entry, want string
		tasks             []loop.Task[int, int]
		data              int
	}{
		{"found at the first evaluation", "evaluatde", `loop: step 3: on each evaluatde: all tasks had a turn: no such entry: "evaluatde" (did you mean metrics.evaluated?); there are: metrics.sum, metrics.evaluated`,
			[]loop.Task[int, int]{train, test}, 9},
		{"found in the first turn", "loss", `loop: step 1: on each loss: all tasks had a turn: no such entry: "loss"; there are: metrics.sum`, []loop.Task[int, int]{train}, 9},
		{"not yet: the evaluation had no turn", "loss", "", []loop.Task[int, int]{train, test}, 2},
		{"no entry", "", "loop: callback 1 (each step, at start, at end): malformed name: no entry to watch", []loop.Task[int, int]{train}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := loop.New(row.tasks...).Run(t.Context(), 0, numbers(row.data), loop.WatchEntry(row.entry, fail))
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, row.want)
		})
	}
}

func TestResult_stop(t *testing.T) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	enough := func(context.Context, loop.Report) error { return loop.ErrStop }
	result, err := l.Run(t.Context(), 0, numbers(9), loop.Watch(loop.Every(loop.Steps(4)), enough))
	require.NoError(t, err)
	require.Equal(t, loop.Stopped, result.Reason)
	require.ErrorIs(t, result.Stop, loop.ErrStop)
	require.EqualError(t, result.Stop, "loop: step 4: every 4 steps: stop")
	result, err = l.Run(t.Context(), 0, numbers(9))
	require.NoError(t, err)
	require.NoError(t, result.Stop)
}

// Tasks and callbacks that the run does not reach are logged and are in the plan.
func TestS05_whatIsNotReachedIsLoggedAndPlanned(t *testing.T) {
	var text strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), loop.On(loop.Every(loop.Steps(5000)), loop.StepFunc(evaluation)).Named("test"))
	options := []loop.Option{loop.Until(loop.Steps(2000)), loop.Watch(loop.At(loop.Steps(2001)), nothing)}
	plan, err := l.Plan(options...)
	require.NoError(t, err)
	require.Contains(t, plan.String(), "every 5000 steps: test  not in 2000 steps")
	_, err = l.Run(t.Context(), 0, numbers(9), options...)
	require.NoError(t, err)
	require.Contains(t, text.String(), `level=INFO msg="loop: not due in this run" what="task 2 (every 5000 steps: test)" until="2000 steps"`)
	require.Contains(t, text.String(), `what="callback 1 (at 2001 steps)" until="2000 steps"`)
	require.Equal(t, 2, strings.Count(text.String(), "not due"))
	_, err = l.Run(t.Context(), 0, numbers(9))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(text.String(), "not due"), "nothing is known of a run without an end")
	spare := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), loop.On(loop.Never, loop.StepFunc(evaluation)), loop.On(loop.Every(loop.Steps(5)).AndAtEnd(), loop.StepFunc(evaluation)))
	_, err = spare.Run(t.Context(), 0, numbers(9), loop.Until(loop.Steps(3)))
	require.NoError(t, err, "Never is meant, and the end is reached")
}

// Changes of a callback to the logs of its report have no effect elsewhere.
func TestReport_logsAreTheWatchersOwn(t *testing.T) {
	var seen []float64
	meddle := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
		r.Logs.Metric("sum", -1)
		r.Logs.Metric("new", -1)
		return nil
	})
	look := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
		require.Equal(t, 1, r.Logs.Len())
		v, err := r.Logs.Float("sum")
		seen = append(seen, v)
		return err
	})
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(4), meddle, look)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 3, 6}, seen)
}

// Only a callback with Changes may replace the state, and only by a value of its type.
func TestReport_SetState(t *testing.T) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	set := func(changes bool, state any) loop.Callback {
		c := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error { return r.SetState(state) })
		c.Changes = changes
		return c
	}
	result, err := l.Run(t.Context(), 100, numbers(3), set(true, 7))
	require.NoError(t, err)
	require.Equal(t, 7, result.State)
	_, err = l.Run(t.Context(), 100, numbers(3), set(false, 7))
	require.EqualError(t, err, "loop: step 1: each step: a callback without Changes cannot change the state")
	_, err = l.Run(t.Context(), 100, numbers(3), set(true, "seven"))
	require.EqualError(t, err, "loop: step 1: each step: a state of type string cannot replace one of type int")
	require.ErrorContains(t, loop.Report{}.SetState(7), "the report has no state")

	atRank0 := set(true, 7)
	atRank0.AtRank0 = true
	_, err = l.Run(t.Context(), 100, numbers(3), atRank0)
	require.ErrorContains(t, err, "a callback with Changes runs in all processes: leave AtRank0 out")

	var any fmt.Stringer
	byHand := loop.Report{}.With(&any)
	require.NoError(t, byHand.SetState(loop.Steps(3)))
	require.Equal(t, loop.Steps(3), byHand.State())
	require.ErrorContains(t, byHand.SetState(7), "cannot replace one of type fmt.Stringer")
	require.NoError(t, byHand.SetState(nil))
	require.Nil(t, any)
}
