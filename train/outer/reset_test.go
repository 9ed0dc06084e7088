package outer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/train/outer"
)

// summing is a state that changes in place: it sums up its batches since the last reset, in training and in
// evaluations.
type summing struct{ sum, resets int }

func (s *summing) step(_ context.Context, _ *summing, batch int) (*summing, loop.Logs, error) {
	var logs loop.Logs
	s.sum += batch
	logs.Stateful("sum", float64(s.sum))
	return s, logs, nil
}

func (s *summing) reset(context.Context, *summing) (*summing, error) {
	s.sum, s.resets = 0, s.resets+1
	return s, nil
}

// Each inner loop and each evaluation sums up its own batches alone.
func TestReset_sumsOfInnerLoopsAndEvaluations(t *testing.T) {
	ones := func(yield func(int, error) bool) {
		for yield(1, nil) {
		}
	}
	tens := loop.Fixed(func(yield func(int, error) bool) {
		for i := 0; i < 3 && yield(10, nil); i++ {
		}
	})
	for _, row := range []struct {
		name     string
		steps    loop.Steps
		evals    int
		stop     bool
		sums     []float64 // of the inner loops
		resets   int
		leftOver int
	}{
		{"no evaluation", 25, 0, false, []float64{10, 10, 5}, 3, 0},
		{"an evaluation", 25, 1, false, []float64{10, 10, 5}, 9, 0},
		{"two of them, and the end at a border", 20, 2, false, []float64{10, 10}, 2 * 5, 0},
		{"an evaluation that stops", 30, 1, true, []float64{10}, 3, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &summing{}
			var sums []float64
			o := outer.Loop[*summing, int]{Train: loop.StepFunc[*summing, int](s.step), LoopSteps: 10, TotalSteps: row.steps, Reset: s.reset,
				Data: func(context.Context, loop.Elapsed) (loop.Data[int], error) { return ones, nil },
				End: []outer.Action[*summing]{{Do: func(_ context.Context, at outer.Border[*summing]) error {
					_, values, err := at.History().Series("sum")
					sums = append(sums, values[len(values)-1])
					for name, e := range at.Evaluations {
						_, values, err := e.History().Series("sum")
						require.NoError(t, err)
						require.Equal(t, []float64{10, 20, 30}, values, name)
					}
					return err
				}}}}
			for i := range row.evals {
				e := outer.Eval[*summing, int]{Test: train.Test[*summing, int]{Name: fmt.Sprint(i), Step: loop.StepFunc[*summing, int](s.step), Data: tens}}
				if row.stop {
					e.End = []outer.Action[*summing]{{Do: func(context.Context, outer.Border[*summing]) error { return loop.ErrStop }}}
				}
				o.Evals = append(o.Evals, e)
			}
			_, err := o.Run(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, row.sums, sums)
			require.Equal(t, row.resets, s.resets)
			require.Equal(t, row.leftOver, s.sum)
		})
	}
}

// A state that is a value is reset for the training and for its evaluation apart; an evaluation's own Reset goes first.
func TestReset_statesThatAreValues(t *testing.T) {
	var seen []int
	look := loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		seen = append(seen, s)
		return s + 1, loop.Logs{}, nil
	})
	to := func(n int) func(context.Context, int) (int, error) {
		return func(context.Context, int) (int, error) { return n, nil }
	}
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 4, LoopSteps: 2, Reset: to(100), Evals: []eval{
		{Test: test{Name: "inherited", Step: look, Data: evalData(2)}}, {Test: test{Name: "own", Step: look, Data: evalData(1), Reset: to(7)}}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []int{100, 101, 7, 100, 101, 7}, seen)
	require.Equal(t, 100, result.State)
	require.Equal(t, []float64{0, 1, 100, 101}, series(t, result.History, "n"))
}

func TestReset_failures(t *testing.T) {
	boom := errors.New("boom")
	fail := func(context.Context, int) (int, error) { return 0, boom }
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 4, LoopSteps: 2, Reset: fail}
	result, err := o.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: step 2: every 2 steps, at end: end of inner loop: reset: boom")
	require.ErrorIs(t, err, boom)
	require.Equal(t, 2, result.State, "its step is made")
	o.Reset, o.Evals = nil, []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1), Reset: fail}}}
	_, err = o.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: step 2: every 2 steps, at end: evaluation test: step 0: at start: reset: boom")
}
