package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

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
