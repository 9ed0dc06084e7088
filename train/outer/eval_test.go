package outer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train/outer"
)

// ones logs a one a step.
var ones = loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("one", 1)
	return s, logs, nil
})

func TestB41_B42_listsOfAnEvaluation(t *testing.T) {
	sum := loop.Aggregations{loop.Metrics: loop.Sum}
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 1,
		Evals: []eval{{Test: test{Name: "all", Step: ones, Data: evalData(10)}}, {Test: test{Name: "piped", Step: ones, Data: evalData(99), Length: loop.Steps(10), Aggregate: sum}}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	for _, name := range []string{"all", "piped"} {
		list := series(t, result.Evaluations[name].History(), "one")
		require.Equal(t, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, list)
		require.EqualValues(t, 10, result.Evaluations[name].Steps)
		t.Logf("%s: %v", name, list)
	}
	require.Equal(t, 1., number(t, result.Evaluations["all"].Outputs(), "one"))
	require.Equal(t, 10., number(t, result.Evaluations["piped"].Outputs(), "one"))
	require.Equal(t, []float64{10}, series(t, result.History, "one_piped"))
}

func TestB49_B53_B54_intervals(t *testing.T) {
	for _, row := range []struct {
		name      string
		intervals []outer.InnerLoops
		want      []int
	}{
		{"B49 each", []outer.InnerLoops{0}, []int{10}},
		{"B53 1 and 2", []outer.InnerLoops{1, 2}, []int{10, 5}},
		{"B54 10 and none", []outer.InnerLoops{10, 0}, []int{1, 10}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := make([]int, len(row.intervals))
			o := toy{Train: counting, Data: endless(nil), TotalSteps: 100, LoopSteps: 10}
			for i, n := range row.intervals {
				o.Evals = append(o.Evals, eval{Test: test{Name: fmt.Sprint(i), Step: ones, Data: evalData(2)}, Every: n,
					End: []action{{Do: func(context.Context, border) error { got[i]++; return nil }}}})
			}
			result, err := o.Run(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, row.want, got)
			require.Equal(t, 94.5, number(t, result.Last.Outputs(), "loss")) // of the training
			t.Logf("%v: %v evaluations", row.intervals, got)
		})
	}
}

func TestEvalSpec_intervalAndTheLastInnerLoop(t *testing.T) {
	for _, row := range []struct {
		total loop.Steps
		want  []float64
	}{{45, []float64{20, 40}}, {55, []float64{20, 40, 55}}, {60, []float64{20, 40, 60}}} {
		o := toy{Train: counting, Data: endless(nil), TotalSteps: row.total, LoopSteps: 10, Evals: []eval{{Every: 2, Test: test{Name: "test", Data: evalData(1),
			Step: loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
				var logs loop.Logs
				logs.Metric("at", float64(s))
				return s, logs, nil
			})}}}}
		result, err := o.Run(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, row.want, series(t, result.History, "at_test"))
	}
}

func TestEvalSpec_when(t *testing.T) {
	var asked [][2]int64
	runs := 0
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 25, LoopSteps: 10, Evals: []eval{{Test: test{Name: "test", Step: ones,
		Data: func(ctx context.Context) (loop.Data[int], error) { runs++; return evalData(1)(ctx) }},
		When: func(at outer.Inner) bool {
			asked = append(asked, [2]int64{at.Elapsed.Steps, at.Number})
			return at.Elapsed.Steps > 10
		}}}}
	_, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, [][2]int64{{10, 1}, {20, 2}, {25, 3}}, asked)
	require.Equal(t, 2, runs)
}

// In Jaxloop, 30 steps by 10 with an evaluation of 4 counted batches end at step 38, after inner loops of 10, 10 and 6.
func TestD14_evaluationsLeaveTheTrainingAlone(t *testing.T) {
	var loops []string
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 30, LoopSteps: 10, End: []action{noting(&loops)},
		Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(4)}}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 30, result.State)
	require.Equal(t, []string{"1:10", "2:10", "3:10"}, loops)
	require.Equal(t, []float64{30, 31, 32, 33}, series(t, result.Evaluations["test"].History(), "n"))
	require.Equal(t, 31.5, number(t, result.Evaluations["test"].Outputs(), "loss"))
	// Its entries stand in the history of the run, but are no outputs of the inner loop.
	require.Equal(t, []float64{11.5, 21.5, 31.5}, series(t, result.History, "loss_test"))
	_, err = result.Last.Outputs().Get("loss_test")
	require.ErrorIs(t, err, loop.ErrNoEntry)
	t.Logf("state %d after %v", result.State, loops)
}

// The losses of the evaluations are 1.0, 0.5, 0.6, 0.7: with a patience of 2 the fourth one ends the training.
func TestB74_stopInAnEvaluation(t *testing.T) {
	losses := []float64{1.0, 0.5, 0.6, 0.7, 0.8}
	best, bestAt, evals := 9., int64(-1), int64(0)
	stop := action{Name: "early stopping", Do: func(_ context.Context, at border) error {
		loss, err := at.Evaluations["test"].Outputs().Float("loss")
		if err != nil {
			return err
		}
		evals++
		if loss < best {
			best, bestAt = loss, evals-1
		}
		if evals-1-bestAt >= 2 {
			return fmt.Errorf("best loss %g in evaluation %d: %w", best, bestAt, loop.ErrStop)
		}
		return nil
	}}
	for _, row := range []struct {
		name string
		put  func(*toy)
		stop string
	}{
		{"as its action", func(o *toy) { o.Evals[0].End = []action{stop} },
			"loop: step 40: every 10 steps, at end: evaluation test: action early stopping: best loss 0.5 in evaluation 1: stop"},
		{"as an action of the training", func(o *toy) { o.End = []action{stop} },
			"loop: step 40: every 10 steps, at end: action early stopping: best loss 0.5 in evaluation 1: stop"},
	} {
		t.Run(row.name, func(t *testing.T) {
			best, bestAt, evals = 9, -1, 0
			o := toy{Train: counting, Data: endless(nil), TotalSteps: 100, LoopSteps: 10, Evals: []eval{{Test: test{Name: "test", Data: evalData(3),
				Step: loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
					var logs loop.Logs
					logs.Loss("loss", losses[s/10-1])
					return s, logs, nil
				})}}}}
			row.put(&o)
			result, err := o.Run(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, loop.Stopped, result.Reason)
			require.Equal(t, 40, result.State)
			require.EqualError(t, result.Stop, row.stop)
			t.Logf("%v", result.Stop)
		})
	}
}

// What the loop's own options see of an evaluation.
func TestEvalSpec_entriesCanBeWatched(t *testing.T) {
	var seen []float64
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 30, LoopSteps: 10, Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1)}}}}
	_, err := o.Run(t.Context(), 0, loop.WatchEntry("loss_test", func(_ context.Context, r loop.Report) error {
		v, err := r.Logs.Float("loss_test")
		seen = append(seen, v)
		return err
	}))
	require.NoError(t, err)
	require.Equal(t, []float64{10, 20, 30}, seen)
}

// Two entries of one path: one would hide the other.
func TestEval_anEntryThatIsThereAlready(t *testing.T) {
	logsBoth := loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
		s, logs, err := counting(ctx, s, b)
		logs.Loss("loss_test", 1)
		return s, logs, err
	})
	o := toy{Train: logsBoth, Data: endless(nil), TotalSteps: 4, LoopSteps: 2, Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1)}}}}
	result, err := o.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: step 2: every 2 steps, at end: evaluation test: losses.loss_test is logged in this turn already: give each evaluation a Name of its own")
	require.Equal(t, 2, result.State)

	evals := []eval{{Test: test{Name: "x_y", Step: counting, Data: evalData(1)}}, {Test: test{Name: "y", Data: evalData(1),
		Step: loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			var logs loop.Logs
			logs.Loss("loss_x", 1)
			return s, logs, nil
		})}}}
	_, err = continuous{Checkpoints: &memory{kept: map[int64]int{3: 30}}, Stop: stopAtOnce, Evals: evals}.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: step 1: each step: evaluation y: checkpoint of step 3: losses.loss_x_y is logged in this turn already: give each evaluation a Name of its own")
}

// A failure that wraps ErrStop, as data that ends with it, is no wish to stop the training.
func TestEval_aFailureIsNoWishToStop(t *testing.T) {
	broken := func(context.Context) (loop.Data[int], error) {
		return func(yield func(int, error) bool) { yield(0, fmt.Errorf("broken: %w", loop.ErrStop)) }, nil
	}
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 4, LoopSteps: 2, Evals: []eval{{Test: test{Name: "test", Step: counting, Data: broken}}}}
	result, err := o.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: step 2: every 2 steps, at end: evaluation test: step 1: data: broken: stop")
	require.Equal(t, loop.Failed, result.Reason)
}

// What a test has, an evaluation has: its state may go on, it may have hooks, and no data is an error.
func TestEval_isATest(t *testing.T) {
	evals := []eval{{Test: test{Name: "test", Step: counting, Data: evalData(3), KeepState: true}}}
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 4, LoopSteps: 2, Evals: evals}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 4+2*3, result.State)
	require.EqualValues(t, 4, result.Elapsed.Steps)
	evals[0].Data = evalData(0)
	_, err = o.Run(t.Context(), 0)
	require.ErrorContains(t, err, "evaluation test: step 1: data: no batch to test on")
}
