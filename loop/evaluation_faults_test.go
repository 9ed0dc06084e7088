package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

func TestEvaluation_refusedBeforeTheRun(t *testing.T) {
	inner := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	for _, row := range []struct {
		name, err string
		test      loop.Evaluation[int, int]
	}{
		{"no aggregation", "aggregation of metrics: no function given", loop.Evaluation[int, int]{Loop: inner, Data: ten, Aggregate: map[loop.Collection]loop.Aggregation{loop.Metrics: {Name: "mean"}}}},
		{"no function", "aggregation of losses: no function given", loop.Evaluation[int, int]{Loop: inner, Data: ten, Aggregate: map[loop.Collection]loop.Aggregation{loop.Losses: {Name: "mine"}}}},
		{"no data", "no data given", loop.Evaluation[int, int]{Loop: inner}},
		{"F37: length 0", "until: the length of an evaluation must be positive, got 0 steps", loop.Evaluation[int, int]{Loop: inner, Data: ten, Options: []loop.Option{loop.Until(loop.Steps(0))}}},
		{"F37: negative length", "until: period must be zero or positive, got -3 samples", loop.Evaluation[int, int]{Loop: inner, Data: ten, Options: []loop.Option{loop.Until(loop.Samples(-3))}}},
		{"an inner task", "task 1 (every 0 steps): period must be positive, got 0 steps",
			loop.Evaluation[int, int]{Loop: loop.New(loop.On(loop.Every(loop.Steps(0)), loop.StepFunc(add))), Data: ten}},
		{"an impossible inner task", "task 1 (each step and never): never due, however long the run is: its parts exclude each other; to leave it out, use loop.Never",
			loop.Evaluation[int, int]{Loop: loop.New(loop.On(loop.EachStep.And(loop.Never), loop.StepFunc(add))), Data: ten, Options: []loop.Option{loop.Until(loop.Steps(2))}}},
		{"an inner option", "thin: rows must be positive, got 0", loop.Evaluation[int, int]{Loop: inner, Data: ten, Options: []loop.Option{loop.Thin(0)}}},
		{"all at once", "aggregation of metrics: no function given\nno data given\nuntil: the length of an evaluation must be positive, got 0s",
			loop.Evaluation[int, int]{Loop: inner, Options: []loop.Option{loop.Until(loop.Time(0))}, Aggregate: map[loop.Collection]loop.Aggregation{loop.Metrics: {Name: "mean"}}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.test.Name = "test"
			steps := 0
			l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { steps++; return s, loop.Logs{}, nil })),
				row.test.On(loop.Every(loop.Steps(2))))
			_, err := l.Run(t.Context(), 0, numbers(10))
			require.EqualError(t, err, "loop: task 2 (every 2 steps: evaluation test): "+row.err)
			require.Equal(t, 0, steps, "before anything is done")
			_, _, err = row.test.Run(t.Context(), 0)
			require.EqualError(t, err, "loop: evaluation test: "+row.err)
			boom := errors.New("boom")
			_, err = loop.New(row.test.On(loop.EachStep).WithErr(boom).WithErr(nil)).Run(t.Context(), 0, numbers(10))
			require.EqualError(t, err, "loop: task 1 (each step: evaluation test): "+row.err+"\nboom")
			require.ErrorIs(t, err, boom)
		})
	}
}

func TestEvaluation_errorsNameBothLoops(t *testing.T) {
	boom := errors.New("boom")
	fails := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
		if n == 2 {
			return s, loop.Logs{}, boom
		}
		return s + 1, loop.Logs{}, nil
	})).
		Named("test step"))
	end := attend("closer", loop.AtEnd, func() loop.Attendant { return ender{func() error { return boom }} })
	for _, row := range []struct {
		name, err string
		test      loop.Evaluation[int, int]
	}{
		{"step", "step 3: each step: test step: boom", loop.Evaluation[int, int]{Loop: fails, Data: ten}},
		{"data", "step 2: data: boom", loop.Evaluation[int, int]{Loop: fails, Data: failing(1, boom)}},
		{"no data", "step 1: data: the source returned no iterator for position 0", loop.Evaluation[int, int]{Loop: fails, Data: loop.From(func(int64) iter.Seq2[int, error] { return nil })}},
		{"empty data", "no batch to evaluate on: the data is empty, or an iterator that an earlier evaluation has read to its end", loop.Evaluation[int, int]{Loop: fails, Data: numbers(0)}},
		{"end", "at the end: step 2: at end: closer: boom", loop.Evaluation[int, int]{Loop: fails, Data: ten, Options: []loop.Option{loop.Until(loop.Steps(2)), end}}},
		{"two levels deep", "step 1: each step: evaluation deep: step 3: each step: test step: boom",
			loop.Evaluation[int, int]{Data: ten, Loop: loop.New(loop.Evaluation[int, int]{Name: "deep", Loop: fails, Data: ten}.On(loop.EachStep))}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.test.Name = "test"
			result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), row.test.On(loop.Every(loop.Steps(4)))).Run(t.Context(), 0, numbers(10))
			require.EqualError(t, err, "loop: step 4: every 4 steps: evaluation test: "+row.err)
			if row.name != "no data" && row.name != "empty data" {
				require.ErrorIs(t, err, boom)
			}
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 6, result.State)
			require.EqualValues(t, 4, result.Elapsed.Steps, "the training step of the turn is in the state")
			require.Len(t, stepsOf(t, result.History, "sum"), 4)
			_, _, err = row.test.Run(t.Context(), 0)
			require.EqualError(t, err, "loop: evaluation test: "+row.err)
		})
	}
}

// A failure within that has ErrStop in it is a failure: it must not end the outer run as if all were well.
func TestEvaluation_aFailureIsNoWishToStop(t *testing.T) {
	stop := func(context.Context, int, int) (int, loop.Logs, error) { panic(loop.ErrStop) }
	for _, row := range []struct {
		name string
		test loop.Evaluation[int, int]
	}{
		{"a panic", loop.Evaluation[int, int]{Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(stop))), Data: ten}},
		{"data", loop.Evaluation[int, int]{Loop: counting(loop.Metrics), Data: failing(1, loop.ErrStop)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := loop.New(row.test.On(loop.EachStep)).Run(t.Context(), 0, numbers(10))
			require.ErrorContains(t, err, "loop: step 1: each step: evaluation: ")
			require.Equal(t, loop.Failed, result.Reason)
			var p *loop.PanicError
			require.Equal(t, row.name == "a panic", errors.As(err, &p), "what it wraps can be asked for")
		})
	}
}

func TestEvaluation_anEntryThatIsThereAlready(t *testing.T) {
	unnamed := loop.Evaluation[int, int]{Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(add))), Data: ten}
	twice := loop.Evaluation[int, int]{Name: "test", Loop: unnamed.Loop, Data: ten}
	const hint = " is already logged in this turn: give each evaluation its own name"
	for _, row := range []struct {
		name, err string
		loop      loop.Loop[int, int]
	}{
		{"the step's", "loop: step 3: every 3 steps: evaluation: metrics.sum" + hint, loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), unnamed.On(loop.Every(loop.Steps(3))))},
		{"another evaluation's", "loop: step 1: each step: evaluation test: metrics.sum_test" + hint, loop.New(twice.On(loop.EachStep), twice.On(loop.EachStep))},
		{"in turns of their own", "", loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), unnamed.On(loop.AtStart))},
		{"alone", "", loop.New(unnamed.On(loop.EachStep))},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := row.loop.Run(t.Context(), 0, numbers(4))
			if row.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, row.err)
		})
	}
}

// Ciclo continues to train after an interrupted evaluation. Here the run ends, and a resumed run repeats no step and
// omits none.
func TestD09_cancelledInsideAnEvaluation(t *testing.T) {
	for _, row := range []struct {
		name   string
		heeds  bool  // the inner step returns the cause itself
		front  bool  // the evaluation comes before the training step
		turn   int64 // in which the evaluation is cancelled
		counts int64
	}{
		{"noticed between inner turns", false, false, 6, 6},
		{"noticed by the inner step", true, false, 6, 6},
		{"in the first evaluation", false, false, 2, 2},
		{"in front of the training step, which is not made then", true, true, 6, 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			cause := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			trained := int64(0)
			train := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
				trained++
				return s + n, metric("sum", float64(s+n)), nil
			}))

			test := loop.Evaluation[int, int]{Name: "test", Data: ten, Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(func(ctx context.Context, s, n int) (int, loop.Logs, error) {
				if n == 3 && trained == row.counts {
					cancel(cause)
					if row.heeds && ctx.Err() != nil {
						return s, loop.Logs{}, context.Cause(ctx)
					}
				}
				return s, metric("m", 1), nil
			})))}.On(loop.Every(loop.Steps(2)))
			training := loop.New(train, test)
			if row.front {
				training = loop.New(test, train)
			}
			from := func(k int64) loop.Data[int] {
				return func(yield func(int, error) bool) {
					for i := k + 1; yield(int(i), nil); i++ {
					}
				}
			}
			sum := func(n int64) int { return int(n * (n + 1) / 2) }

			first, err := training.Run(ctx, 0, from(0))
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, fmt.Sprintf("loop: step %d: every 2 steps: evaluation test: step ", row.turn))
			require.Equal(t, loop.Cancelled, first.Reason)
			require.Equal(t, row.counts, first.Elapsed.Steps)
			require.Equal(t, sum(row.counts), first.State, "what is counted is in the state")
			require.Len(t, stepsOf(t, first.History, "sum"), int(row.counts), "and in the history")

			trained = 100
			second, err := training.Run(t.Context(), first.State, rest(from(first.Elapsed.Steps)), loop.Continue(first.Elapsed, first.History), loop.Until(loop.Steps(10)))
			require.NoError(t, err)
			require.Equal(t, sum(10), second.State)
			require.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, stepsOf(t, second.History, "sum"))
		})
	}
}
