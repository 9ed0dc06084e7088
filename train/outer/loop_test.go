package outer_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/train/outer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The toy of the outer loop's tests: a state that counts its steps, and batches that are the steps they belong to.
type (
	toy    = outer.Loop[int, int]
	eval   = outer.Eval[int, int]
	test   = train.Test[int, int]
	action = outer.Action[int]
	border = outer.Border[int]
)

// counting logs the state before its step, as "n" and as a loss.
var counting = loop.StepFunc[int, int](func(_ context.Context, state, _ int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Output("n", float64(state))
	logs.Loss("loss", float64(state))
	return state + 1, logs, nil
})

// endless is data without end that goes on behind from; pulled counts the batches.
func endless(pulled *int) func(context.Context, loop.Elapsed) (loop.Data[int], error) {
	return dataOf(math.MaxInt, pulled)
}

func dataOf(n int, pulled *int) func(context.Context, loop.Elapsed) (loop.Data[int], error) {
	return func(_ context.Context, from loop.Elapsed) (loop.Data[int], error) {
		return func(yield func(int, error) bool) {
			for i := int(from.Steps); i < n; i++ {
				if pulled != nil {
					*pulled++
				}
				if !yield(i, nil) {
					return
				}
			}
		}, nil
	}
}

func evalData(n int) func(context.Context) (loop.Data[int], error) {
	return func(context.Context) (loop.Data[int], error) {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
		}, nil
	}
}

// noting is an action that notes the number and the steps of each inner loop.
func noting(into *[]string) action {
	return action{Name: "note", Do: func(_ context.Context, at border) error {
		*into = append(*into, fmt.Sprintf("%d:%d", at.Number, at.Steps))
		return nil
	}}
}

func series(t *testing.T, h *loop.History, name string) []float64 {
	t.Helper()
	_, values, err := h.Series(name)
	require.NoError(t, err)
	return values
}

func number(t *testing.T, logs loop.Logs, name string) float64 {
	t.Helper()
	v, err := logs.Float(name)
	require.NoError(t, err)
	return v
}

func TestB32_oneInnerLoop(t *testing.T) {
	pulled, begin, end := 0, -1, -1
	o := toy{Train: counting, Data: dataOf(10, &pulled), TotalSteps: outer.AllData,
		Begin: []action{{Do: func(_ context.Context, at border) error { begin = at.State; return nil }}},
		End:   []action{{Do: func(_ context.Context, at border) error { end = at.State; return nil }}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, series(t, result.Last.History(), "n"))
	require.Equal(t, []int{0, 10, 10, 10}, []int{begin, end, pulled, result.State})
	require.Equal(t, loop.DataEnded, result.Reason)
	require.EqualValues(t, 1, result.Loops)
	t.Logf("begin saw %d, end saw %d, %d batches", begin, end, pulled)
}

func TestB34_fromStep5(t *testing.T) {
	end := 0
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 10,
		End: []action{{Do: func(_ context.Context, at border) error { end = at.State; return nil }}}}
	result, err := o.Run(t.Context(), 5, loop.From(loop.Elapsed{Steps: 5}, nil))
	require.NoError(t, err)
	require.Equal(t, []float64{5, 6, 7, 8, 9}, series(t, result.Last.History(), "n"))
	require.Equal(t, 10, end)
	require.Equal(t, loop.UntilReached, result.Reason)
}

func TestB43_B46_outputsOfTheLastInnerLoop(t *testing.T) {
	pulled := 0
	o := toy{Train: counting, Data: endless(&pulled), TotalSteps: 100, LoopSteps: 10}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 100, result.State)
	require.EqualValues(t, 10, result.Loops)
	require.EqualValues(t, 10, result.Last.Number)
	require.EqualValues(t, 10, result.Last.Steps)
	require.Equal(t, []float64{90, 91, 92, 93, 94, 95, 96, 97, 98, 99}, series(t, result.Last.History(), "n"))
	require.Equal(t, 94.5, number(t, result.Last.Outputs(), "loss")) // the mean
	require.Equal(t, 99., number(t, result.Last.Outputs(), "n"))     // the last
	require.Equal(t, 100, result.History.Len())
	require.Equal(t, 100, pulled)
	t.Logf("loop count %d, outputs of %d steps", result.Loops, result.Last.History().Len())
}

func TestB44_stopFromAnAction(t *testing.T) {
	evaluated := 0
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 100, LoopSteps: 10,
		Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(2)},
			End: []action{{Do: func(context.Context, border) error { evaluated++; return nil }}}}},
		End: []action{
			{Name: "enough", Do: func(context.Context, border) error { return fmt.Errorf("good: %w", loop.ErrStop) }},
			{Name: "behind it", Do: func(context.Context, border) error { evaluated += 10; return nil }},
		}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, loop.Stopped, result.Reason)
	require.Equal(t, 10, result.State)
	require.EqualError(t, result.Stop, "loop: step 10: every 10 steps, at end: action enough: good: stop")
	require.Equal(t, 11, evaluated) // the evaluation and the other action of that border, once
	require.EqualValues(t, 1, result.Loops)
	t.Logf("stopped at %d", result.State)
}

func TestOuter_stopFromElsewhere(t *testing.T) {
	stop := func(context.Context, border) error { return loop.ErrStop }
	stopAt := loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
		s, logs, _ := counting(ctx, s, b)
		if s == 13 {
			return s, logs, loop.ErrStop
		}
		return s, logs, nil
	})
	for _, row := range []struct {
		name  string
		toy   toy
		state int
		loops []string
		stop  string
	}{
		{"a step", toy{Train: stopAt}, 13, []string{"1:10", "2:3"}, "loop: step 13: each step: stop"},
		{"a begin action", toy{Train: counting, Begin: []action{{Every: 2, Do: stop}}}, 11, []string{"1:10", "2:1"},
			"loop: step 11: begin of inner loop: action: stop"},
		{"a step of an evaluation", toy{Train: counting, Evals: []eval{{Test: test{Name: "test", Step: stopAt, Data: evalData(5)}}}}, 10, []string{"1:10"},
			"loop: step 10: every 10 steps, at end: evaluation test: step 3: each step: test step: stop"},
		{"an action of an evaluation", toy{Train: counting, Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(5)}, Every: 3, End: []action{{Name: "x", Do: stop}}}}},
			30, []string{"1:10", "2:10", "3:10"}, "loop: step 30: every 30 steps, at end: evaluation test: action x: stop"},
		{"a task", toy{Train: counting, Tasks: []loop.Task[int, int]{loop.OnFunc(loop.At(loop.Steps(4)),
			func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, loop.ErrStop })}}, 4, []string{"1:4"}, "loop: step 4: at 4 steps: stop"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var loops []string
			o := row.toy
			o.Data, o.TotalSteps, o.LoopSteps, o.End = endless(nil), outer.AllData, 10, []action{noting(&loops)}
			result, err := o.Run(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, loop.Stopped, result.Reason)
			require.Equal(t, row.state, result.State)
			require.Equal(t, row.loops, loops)
			require.EqualError(t, result.Stop, row.stop)
			require.EqualValues(t, row.state, result.Elapsed.Steps)
		})
	}
}

func TestOuter_resume(t *testing.T) {
	for _, row := range []struct {
		name           string
		from, total, n int
		loops          []string
		reason         loop.Reason
		count          outer.InnerLoops
	}{
		{"from nothing", 0, 30, 10, []string{"1:10", "2:10", "3:10"}, loop.UntilReached, 3},
		{"55 of 100 by 10", 55, 100, 10, []string{"6:5", "7:10", "8:10", "9:10", "10:10"}, loop.UntilReached, 10},
		{"at a border", 50, 70, 10, []string{"6:10", "7:10"}, loop.UntilReached, 7},
		{"the last one is short", 0, 25, 10, []string{"1:10", "2:10", "3:5"}, loop.UntilReached, 3},
		{"first and last are one", 52, 58, 10, []string{"6:6"}, loop.UntilReached, 6},
		{"at the total already", 100, 100, 10, nil, loop.UntilReached, 10},
		{"beyond the total", 110, 100, 10, nil, loop.UntilReached, 11},
		{"one inner loop", 5, 12, 0, []string{"1:7"}, loop.UntilReached, 1},
		{"longer than the training", 0, 7, 10, []string{"1:7"}, loop.UntilReached, 1},
		{"steps of one", 3, 6, 1, []string{"4:1", "5:1", "6:1"}, loop.UntilReached, 6},
	} {
		t.Run(row.name, func(t *testing.T) {
			var loops []string
			var begins []int
			o := toy{Train: counting, Data: endless(nil), TotalSteps: loop.Steps(row.total), LoopSteps: loop.Steps(row.n), End: []action{noting(&loops)},
				Begin: []action{{Do: func(_ context.Context, at border) error { begins = append(begins, at.State); return nil }}}}
			result, err := o.Run(t.Context(), row.from, loop.From(loop.Elapsed{Steps: int64(row.from)}, nil))
			require.NoError(t, err)
			require.Equal(t, row.loops, loops)
			require.Equal(t, row.reason, result.Reason)
			require.Equal(t, row.count, result.Loops)
			require.Equal(t, max(row.from, row.total), result.State)
			require.Len(t, begins, len(loops))
			if len(loops) == 0 {
				require.Equal(t, 0, result.Last.Outputs().Len())
				require.Equal(t, 0, result.Last.History().Len())
			}
		})
	}
}

// Cutting a training in two at any step moves no border: the two halves do together what one run does.
func TestOuter_aCutMovesNoBorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 40).Draw(t, "total")
		n := rapid.IntRange(1, 12).Draw(t, "n")
		cut := rapid.IntRange(0, total).Draw(t, "cut")
		interval := rapid.IntRange(1, (total-1)/n+1).Draw(t, "interval")
		run := func(from, to, data int) (ends []int64, evals []int64) {
			o := toy{Train: counting, Data: dataOf(data, nil), TotalSteps: loop.Steps(to), LoopSteps: loop.Steps(n),
				End: []action{{Do: func(_ context.Context, at border) error { ends = append(ends, at.Elapsed.Steps); return nil }}},
				Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1)}, Every: outer.InnerLoops(interval),
					End: []action{{Do: func(_ context.Context, at border) error { evals = append(evals, at.Elapsed.Steps); return nil }}}}}}
			result, err := o.Run(context.Background(), from, loop.From(loop.Elapsed{Steps: int64(from)}, nil))
			require.NoError(t, err)
			require.Equal(t, min(to, data), result.State)
			return ends, evals
		}
		whole, wholeEvals := run(0, total, math.MaxInt)
		// The first half ends with its data, in a border of its own if it is cut off there.
		first, firstEvals := run(0, total, cut)
		second, secondEvals := run(cut, total, math.MaxInt)
		if cut%n != 0 && cut != total {
			require.EqualValues(t, cut, first[len(first)-1])
			first = first[:len(first)-1]
			firstEvals = slices.DeleteFunc(firstEvals, func(step int64) bool { return step == int64(cut) })
		}
		require.Equal(t, whole, slices.Concat(first, second))
		require.Equal(t, wholeEvals, slices.Concat(firstEvals, secondEvals))
	})
}

func TestD16_noActionOnAnEmptyLoop(t *testing.T) {
	for _, row := range []struct {
		batches int
		loops   []string
	}{
		{25, []string{"1:10", "2:10", "3:5"}},
		{20, []string{"1:10", "2:10"}},
		{0, nil},
	} {
		var loops []string
		begins := 0
		o := toy{Train: counting, Data: dataOf(row.batches, nil), TotalSteps: 100, LoopSteps: 10, End: []action{noting(&loops)},
			Begin: []action{{Do: func(context.Context, border) error { begins++; return nil }}},
			Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(2)}}}}
		result, err := o.Run(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, row.loops, loops)
		require.Equal(t, len(row.loops), begins)
		require.Equal(t, loop.DataEnded, result.Reason)
		require.EqualValues(t, len(row.loops), result.Loops)
		if len(loops) > 0 {
			require.Len(t, series(t, result.History, "loss_test"), len(loops))
		}
		t.Logf("%d batches: %v", row.batches, loops)
	}
}

func TestD13_nothingSaidAboutSteps(t *testing.T) {
	for _, row := range []struct {
		name        string
		total, each loop.Steps
		until       loop.Option
		loops       []string
		reason      loop.Reason
	}{
		{"no length, all data", outer.AllData, 0, nil, []string{"1:7"}, loop.DataEnded},
		{"all data", outer.AllData, 4, nil, []string{"1:4", "2:3"}, loop.DataEnded},
		{"no length", 5, 0, nil, []string{"1:5"}, loop.UntilReached},
		{"until", 0, 2, loop.Until(loop.Samples(5)), []string{"1:2", "2:2", "3:1"}, loop.UntilReached},
		{"until zero", 0, 2, loop.Until(loop.Steps(0)), nil, loop.UntilReached},
	} {
		t.Run(row.name, func(t *testing.T) {
			var loops []string
			o := toy{Train: counting, Data: dataOf(7, nil), TotalSteps: row.total, LoopSteps: row.each, End: []action{noting(&loops)}}
			result, err := o.Run(t.Context(), 0, row.until)
			require.NoError(t, err)
			require.Equal(t, row.loops, loops)
			require.Equal(t, row.reason, result.Reason)
			t.Logf("%v, %s", loops, result.Reason)
		})
	}
}

// blockCounting is counting in blocks.
type blockCounting struct {
	loop.StepFunc[int, int]
	sizes *[]int
}

func (b blockCounting) BlockSize() int { return 64 }

func (b blockCounting) StepBlock(ctx context.Context, s int, batches []int) (int, []loop.Logs, error) {
	*b.sizes = append(*b.sizes, len(batches))
	all := make([]loop.Logs, len(batches))
	for i, x := range batches {
		s, all[i], _ = counting(ctx, s, x)
	}
	return s, all, nil
}

func TestOuter_blocksEndAtBorders(t *testing.T) {
	var sizes []int
	var ends, evals []int
	o := toy{Train: blockCounting{counting, &sizes}, Data: endless(nil), TotalSteps: 130, LoopSteps: 20,
		Begin: []action{{Do: func(_ context.Context, at border) error { ends = append(ends, -at.State); return nil }}},
		End:   []action{{Do: func(_ context.Context, at border) error { ends = append(ends, at.State); return nil }}},
		Evals: []eval{{Test: test{Name: "test", Step: loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			evals = append(evals, s)
			return s, loop.Logs{}, nil
		}), Data: evalData(1)}, Every: 2}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 20, -20, 40, -40, 60, -60, 80, -80, 100, -100, 120, -120, 130}, ends)
	require.Equal(t, []int{40, 80, 120}, evals)
	require.Greater(t, slices.Max(sizes), 1)
	require.Equal(t, 130, result.History.Len())
	require.Equal(t, []float64{120, 121, 122, 123, 124, 125, 126, 127, 128, 129}, series(t, result.Last.History(), "n"))
}
