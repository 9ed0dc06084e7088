package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// S05: a short trial run of a program whose evaluations are due later is no error.
func TestS05_whatIsNotReachedIsNoError(t *testing.T) {
	until := loop.Until(loop.Steps(5))
	const hint = ", however long the run is: its parts exclude each other; to leave it out, use loop.Never"
	for _, row := range []struct {
		name    string
		when    loop.Schedule
		options []loop.Option
		err     string // after the name of the task
	}{
		{"every", loop.Every(loop.Steps(6)), []loop.Option{until}, ""},
		{"at", loop.At(loop.Steps(6)), []loop.Option{until}, ""},
		{"after", loop.Never.Then(loop.Steps(3), loop.Every(loop.Steps(3))), []loop.Option{until}, ""},
		{"a contradiction", loop.EachStep.And(loop.Never), []loop.Option{loop.Until(loop.Time(time.Hour))}, "(each step and never: rare): never due" + hint},
		{"in the last turn", loop.Every(loop.Steps(5)), []loop.Option{until}, ""},
		{"at the end", loop.Every(loop.Steps(6)).AndAtEnd(), []loop.Option{until}, ""},
		{"at the start", loop.Every(loop.Steps(6)).AndAtStart(), []loop.Option{until}, ""},
		{"meant", loop.Never, []loop.Option{until}, ""},
		{"samples: nobody knows how many a turn has", loop.Every(loop.Samples(6)), []loop.Option{until}, ""},
		{"time", loop.Every(loop.Time(time.Hour)), []loop.Option{until}, ""},
		{"a function", loop.When("never", func(_, _ loop.Elapsed) bool { return false }), []loop.Option{until}, ""},
		{"no end said", loop.Every(loop.Steps(600)), nil, ""},
		{"no turn is made", loop.Every(loop.Steps(600)), []loop.Option{loop.Until(loop.Steps(0))}, ""},
		{"it was due in the run that is resumed", loop.At(loop.Steps(2)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 3}, nil)}, ""},
		{"it is due after the resume", loop.At(loop.Steps(4)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 3}, nil)}, ""},
		{"resumed at the end", loop.Every(loop.Steps(5)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 5}, nil)}, ""},
		{"resumed, and still out of reach", loop.Every(loop.Steps(6)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 3}, nil)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			steps := 0
			each := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { steps++; return s, loop.Logs{}, nil }))
			_, err := loop.New(each, loop.On(row.when, loop.StepFunc(add)).Named("rare")).Run(t.Context(), 0, numbers(10), row.options...)
			_, watchErr := loop.New(each).Run(t.Context(), 0, numbers(10),
				append(row.options, attend("rare", row.when, func() loop.Attendant { return &attendant{} }))...)
			if row.err == "" {
				require.NoError(t, err)
				require.NoError(t, watchErr)
				return
			}
			require.EqualError(t, err, "loop: task 2 "+row.err)
			require.EqualError(t, watchErr, "loop: callback 1 "+row.err)
			require.Zero(t, steps, "before anything is done")
		})
	}
}

func TestCheck_entriesThatNothingLogs(t *testing.T) {
	logging := func(name string, when loop.Schedule) loop.Task[int, int] {
		return loop.On(when, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, metric(name, 1), nil }))
	}
	twice := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", 1, loop.Metrics)
		return s, logs, nil
	}))

	train := logging("loss", loop.EachStep)
	test := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(train), Data: ten}
	every := loop.Every(loop.Steps(4))
	const seven = 7
	for _, row := range []struct {
		name  string
		entry string
		tasks []loop.Task[int, int]
		from  int64
		steps int64 // at which the run ends
		seen  int
		err   string
	}{
		{"it is there", "loss_test", []loop.Task[int, int]{train, test.On(every)}, 0, seven, 1, ""},
		{"misspelt, one task", "los", []loop.Task[int, int]{train}, 0, 1, 0, `on each los: all tasks had a turn: no such entry: "los" (did you mean metrics.loss?); there are: metrics.loss`},
		{"misspelt, found at the first evaluation", "loss_tset", []loop.Task[int, int]{train, test.On(every)}, 0, 4, 0,
			`on each loss_tset: all tasks had a turn: no such entry: "loss_tset" (did you mean metrics.loss_test?); there are: metrics.loss, metrics.loss_test`},
		{"misspelt, an evaluation at the start", "loss_tset", []loop.Task[int, int]{train, test.On(every.AndAtStart())}, 0, 1, 0, `on each loss_tset: all tasks had a turn: no such entry`},
		{"misspelt, an evaluation at the end", "loss_tset", []loop.Task[int, int]{train, test.On(loop.AtEnd)}, 0, seven, 0, `on each loss_tset: all tasks had a turn: no such entry`},
		{"misspelt, with the collection", "losses.loss", []loop.Task[int, int]{train}, 0, 1, 0, `on each losses.loss: all tasks had a turn: no such entry: "losses.loss"`},
		{"a task had no turn", "los", []loop.Task[int, int]{train, logging("los", loop.At(loop.Steps(100)))}, 0, seven, 0, ""},
		{"a task is never due", "los", []loop.Task[int, int]{train, logging("los", loop.Never)}, 0, seven, 0, ""},
		{"logged at the start only", "first", []loop.Task[int, int]{train, logging("first", loop.AtStart)}, 0, seven, 1, ""},
		{"logged at the end only", "final", []loop.Task[int, int]{train, logging("final", loop.AtEnd)}, 0, seven, 1, ""},
		{"resumed, and not yet there", "loss_test", []loop.Task[int, int]{train, test.On(every)}, 4, 4 + seven, 1, ""},
		{"resumed and misspelt", "loss_tset", []loop.Task[int, int]{train, test.On(every)}, 4, 8, 0, `on each loss_tset: all tasks had a turn: no such entry`},
		{"resumed behind the only turn of a task", "first", []loop.Task[int, int]{train, logging("first", loop.At(loop.Steps(2)))}, 4, 4 + seven, 0, ""},
		{"it means two entries", "loss", []loop.Task[int, int]{twice}, 0, 1, 0, `on each loss: all tasks had a turn: ambiguous name: "loss"; use one of: losses.loss, metrics.loss`},
		{"of two entries one is meant", "metrics.loss", []loop.Task[int, int]{twice}, 0, seven, seven, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			seen := 0
			watch := loop.WatchEntry(row.entry, func(context.Context, loop.Report) error { seen++; return nil })
			result, err := loop.New(row.tasks...).Run(t.Context(), 0, rest(numbers(seven)), watch, loop.Continue(loop.Elapsed{Steps: row.from}, nil))
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.err)
				require.ErrorContains(t, err, "all tasks had a turn: ")
				require.Equal(t, loop.Failed, result.Reason)
			}
			require.Equal(t, row.steps, result.Elapsed.Steps)
			require.Equal(t, row.seen, seen)
		})
	}
}
