package train_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// The toy of the outer loop's tests: a state that counts its steps, and batches that are the steps they belong to.
type (
	outer    = train.Outer[int, int]
	evalSpec = train.EvalSpec[int, int]
	action   = train.Action[int]
	border   = train.Border[int]
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
	o := outer{Train: counting, Data: dataOf(10, &pulled), TotalSteps: train.AllData,
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
	o := outer{Train: counting, Data: endless(nil), TotalSteps: 10,
		End: []action{{Do: func(_ context.Context, at border) error { end = at.State; return nil }}}}
	result, err := o.Run(t.Context(), 5, loop.From(loop.Elapsed{Steps: 5}, nil))
	require.NoError(t, err)
	require.Equal(t, []float64{5, 6, 7, 8, 9}, series(t, result.Last.History(), "n"))
	require.Equal(t, 10, end)
	require.Equal(t, loop.UntilReached, result.Reason)
}

func TestB43_B46_outputsOfTheLastInnerLoop(t *testing.T) {
	pulled := 0
	o := outer{Train: counting, Data: endless(&pulled), TotalSteps: 100, LoopSteps: 10}
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
	o := outer{Train: counting, Data: endless(nil), TotalSteps: 100, LoopSteps: 10,
		Evals: []evalSpec{{Name: "test", Step: counting, Data: evalData(2),
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
		outer outer
		state int
		loops []string
		stop  string
	}{
		{"a step", outer{Train: stopAt}, 13, []string{"1:10", "2:3"}, "loop: step 13: each step: stop"},
		{"a begin action", outer{Train: counting, Begin: []action{{Every: 2, Do: stop}}}, 11, []string{"1:10", "2:1"},
			"loop: step 11: begin of inner loop: action: stop"},
		{"a step of an evaluation", outer{Train: counting, Evals: []evalSpec{{Name: "test", Step: stopAt, Data: evalData(5)}}}, 10, []string{"1:10"},
			"loop: step 10: every 10 steps, at end: evaluation test: loop: step 3: each step: stop"},
		{"an action of an evaluation", outer{Train: counting, Evals: []evalSpec{{Name: "test", Step: counting, Data: evalData(5), Interval: 3, End: []action{{Name: "x", Do: stop}}}}},
			30, []string{"1:10", "2:10", "3:10"}, "loop: step 30: every 30 steps, at end: evaluation test: action x: stop"},
		{"a task", outer{Train: counting, Tasks: []loop.Task[int, int]{loop.OnFunc(loop.At(loop.Steps(4)),
			func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, loop.ErrStop })}}, 4, []string{"1:4"}, "loop: step 4: at 4 steps: stop"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var loops []string
			o := row.outer
			o.Data, o.TotalSteps, o.LoopSteps, o.End = endless(nil), train.AllData, 10, []action{noting(&loops)}
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
		count          train.InnerLoops
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
			o := outer{Train: counting, Data: endless(nil), TotalSteps: loop.Steps(row.total), LoopSteps: loop.Steps(row.n), End: []action{noting(&loops)},
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
			o := outer{Train: counting, Data: dataOf(data, nil), TotalSteps: loop.Steps(to), LoopSteps: loop.Steps(n),
				End: []action{{Do: func(_ context.Context, at border) error { ends = append(ends, at.Elapsed.Steps); return nil }}},
				Evals: []evalSpec{{Name: "test", Step: counting, Data: evalData(1), Interval: train.InnerLoops(interval),
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
		o := outer{Train: counting, Data: dataOf(row.batches, nil), TotalSteps: 100, LoopSteps: 10, End: []action{noting(&loops)},
			Begin: []action{{Do: func(context.Context, border) error { begins++; return nil }}},
			Evals: []evalSpec{{Name: "test", Step: counting, Data: evalData(2)}}}
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
		{"no length, all data", train.AllData, 0, nil, []string{"1:7"}, loop.DataEnded},
		{"all data", train.AllData, 4, nil, []string{"1:4", "2:3"}, loop.DataEnded},
		{"no length", 5, 0, nil, []string{"1:5"}, loop.UntilReached},
		{"until", 0, 2, loop.Until(loop.Samples(5)), []string{"1:2", "2:2", "3:1"}, loop.UntilReached},
		{"until zero", 0, 2, loop.Until(loop.Steps(0)), nil, loop.UntilReached},
	} {
		t.Run(row.name, func(t *testing.T) {
			var loops []string
			o := outer{Train: counting, Data: dataOf(7, nil), TotalSteps: row.total, LoopSteps: row.each, End: []action{noting(&loops)}}
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
	o := outer{Train: blockCounting{counting, &sizes}, Data: endless(nil), TotalSteps: 130, LoopSteps: 20,
		Begin: []action{{Do: func(_ context.Context, at border) error { ends = append(ends, -at.State); return nil }}},
		End:   []action{{Do: func(_ context.Context, at border) error { ends = append(ends, at.State); return nil }}},
		Evals: []evalSpec{{Name: "test", Step: loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			evals = append(evals, s)
			return s, loop.Logs{}, nil
		}), Data: evalData(1), Interval: 2}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 20, -20, 40, -40, 60, -60, 80, -80, 100, -100, 120, -120, 130}, ends)
	require.Equal(t, []int{40, 80, 120}, evals)
	require.Greater(t, slices.Max(sizes), 1)
	require.Equal(t, 130, result.History.Len())
	require.Equal(t, []float64{120, 121, 122, 123, 124, 125, 126, 127, 128, 129}, series(t, result.Last.History(), "n"))
}

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
		outer outer
		state int
		err   string
	}{
		{"a step", outer{Train: failing}, 2, "loop: step 3: each step: boom"},
		{"a begin action", outer{Begin: []action{{Name: "warm", Every: 2, Do: fail}}}, 10, "loop: step 11: begin of inner loop: action warm: boom"},
		{"an end action", outer{End: []action{{Name: "save", Every: 2, Do: fail}}}, 20, "loop: step 20: every 20 steps, at end: action save: boom"},
		{"an evaluation", outer{Evals: []evalSpec{{Name: "test", Step: failing, Data: evalData(5)}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: loop: step 3: each step: boom"},
		{"data of an evaluation", outer{Evals: []evalSpec{{Name: "test", Step: counting, Data: func(context.Context) (loop.Data[int], error) { return nil, boom }}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: data: boom"},
		{"an action of an evaluation", outer{Evals: []evalSpec{{Name: "test", Step: counting, Data: evalData(1), End: []action{
			{Do: func(context.Context, border) error { return loop.ErrStop }}, {Name: "log", Do: fail}}}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: action log: boom"},
		{"a panic in When", outer{Evals: []evalSpec{{Name: "test", Step: counting, Data: evalData(1), When: func(train.EvalContext) bool { panic(boom) }}}}, 10,
			"loop: step 10: every 10 steps, at end: evaluation test: panic: boom"},
		{"the data", outer{Data: func(context.Context, loop.Elapsed) (loop.Data[int], error) { return nil, boom }}, 0, "loop: step 1: data: boom"},
		{"a panic of the data", outer{Data: func(context.Context, loop.Elapsed) (loop.Data[int], error) { panic(boom) }}, 0, "loop: step 1: data: panic: boom"},
		{"Close", outer{TotalSteps: 10, Begin: []action{{Name: "open", Do: func(context.Context, border) error { return nil }, Close: func(context.Context) error { return boom }}}}, 10,
			"loop: at the end: step 10: at end: action open: boom"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := row.outer
			if o.Train == nil {
				o.Train = counting
			}
			if o.Data == nil {
				o.Data = endless(nil)
			}
			o.TotalSteps, o.LoopSteps, o.Dir = cmp.Or(o.TotalSteps, train.AllData), 10, t.TempDir()
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
			require.NoFileExists(t, filepath.Join(o.Dir, train.StoppedFile))
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
			o := outer{Train: counting, Data: endless(nil), TotalSteps: train.AllData, LoopSteps: 10, Dir: t.TempDir()}
			if row.eval {
				o.Evals = []evalSpec{{Name: "test", Step: cancelling, Data: evalData(100)}}
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
			require.NoFileExists(t, filepath.Join(o.Dir, train.StoppedFile))
		})
	}
}

func TestD15_aStopGivesTheStateAndTheReason(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "at the end")
	closed := false
	o := outer{Train: counting, Data: endless(nil), TotalSteps: train.AllData, LoopSteps: 10, Dir: dir, End: []action{{Name: "stopper", Every: 2,
		Do:    func(context.Context, border) error { return fmt.Errorf("best loss 0.5\nat step 1: %w", loop.ErrStop) },
		Close: func(context.Context) error { closed = true; return nil }}}}
	result, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 20, result.State)
	require.Equal(t, loop.Stopped, result.Reason)
	require.True(t, closed)
	text, err := os.ReadFile(filepath.Join(dir, train.StoppedFile))
	require.NoError(t, err)
	require.Equal(t, "stopped after 20 steps: loop: step 20: every 20 steps, at end: action stopper: best loss 0.5; at step 1: stop\n", string(text))
	t.Logf("%s", text)
}

func TestOuter_stoppedFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, train.StoppedFile)
	require.NoError(t, os.WriteFile(file, []byte("of an earlier run"), 0o666))
	there := true
	o := outer{Train: counting, Data: endless(nil), TotalSteps: 10, Dir: dir, Begin: []action{{Do: func(context.Context, border) error {
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
	require.ErrorContains(t, err, "train: outer loop: ")
	require.Equal(t, loop.Failed, result.Reason)
}

func TestOuter_refusesBadSettings(t *testing.T) {
	nothing := func(context.Context, border) error { return nil }
	eval := evalSpec{Name: "test", Step: counting, Data: evalData(1)}
	with := func(change func(*outer)) outer {
		o := outer{Train: counting, Data: endless(nil), TotalSteps: 100, LoopSteps: 10}
		change(&o)
		return o
	}
	for _, row := range []struct {
		name    string
		outer   outer
		options []loop.Option
		err     string
	}{
		{"nothing given", outer{}, nil, "train: outer loop: no Train step given\nno Data given"},
		{"negative", with(func(o *outer) { o.TotalSteps = -2 }), nil, "train: outer loop: want TotalSteps and LoopSteps not negative, got -2 and 10"},
		{"no end", with(func(o *outer) { o.TotalSteps = 0 }), nil,
			"train: outer loop: no end given: want TotalSteps, loop.Until among the options, or TotalSteps train.AllData where the data ends the training"},
		{"two ends", with(func(*outer) {}), []loop.Option{loop.Until(loop.Steps(5))}, "train: outer loop: the end is TotalSteps, 100 steps, and loop.Until, 5 steps: want one of the two"},
		{"a bad option", with(func(*outer) {}), []loop.Option{loop.Limit(0)}, "train: outer loop: loop: limit: rows must be positive, got 0"},
		{"no name", with(func(o *outer) { o.Evals = []evalSpec{{Step: counting, Data: evalData(1)}} }), nil, `train: outer loop: evaluation 1 (): want a name that no other has, got ""`},
		{"one name twice", with(func(o *outer) { o.Evals = []evalSpec{eval, eval} }), nil, `train: outer loop: evaluation 2 (test): want a name that no other has, got "test"`},
		{"an empty evaluation", with(func(o *outer) { o.Evals = []evalSpec{{Name: "x", Steps: -1, Interval: -2}} }), nil,
			"train: outer loop: evaluation 1 (x): no Step given\nno Data given\nwant Steps and Interval not negative, got -1 and -2"},
		{"an action with nothing to do", with(func(o *outer) { o.End = []action{{Name: "a", Every: -1}} }), nil,
			"train: outer loop: action 1 (a): no function given\naction 1 (a): Every must not be negative, got -1"},
		{"no checkpoints to save to", with(func(o *outer) { o.End = []action{train.SaveTo[int](nil, 0)} }), nil, "train: outer loop: action 1 (save checkpoint): no function given"},
		{"steps in the place of inner loops", with(func(o *outer) { o.End = []action{{Name: "save", Every: 100, Do: nothing}} }), nil,
			"train: outer loop: action save: never due: every 100 inner loops, and the training has 10"},
		{"an interval that is too long", with(func(o *outer) { eval := eval; eval.Interval = 11; o.Evals = []evalSpec{eval} }), nil,
			"train: outer loop: evaluation test: never due: every 11 inner loops, and the training has 10"},
		{"one inner loop", outer{Train: counting, Data: endless(nil), TotalSteps: train.AllData, Begin: []action{{Every: 2, Do: nothing}}}, nil,
			"train: outer loop: action: never due: every 2 inner loops, and the training has 1"},
		{"an aggregation", with(func(o *outer) { o.Aggregate = loop.Aggregations{loop.Losses: {}} }), nil, "no function given"},
		{"data that is nil", with(func(o *outer) {
			o.Data = func(context.Context, loop.Elapsed) (loop.Data[int], error) { return nil, nil }
		}), nil, "loop: step 1: data: no data given: Data gave nil"},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := row.outer.Run(t.Context(), 42, row.options...)
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
	o := outer{Train: counting, Data: endless(nil), TotalSteps: 20, LoopSteps: 10, End: []action{noting(&loops)},
		Evals: []evalSpec{{Name: "test", Step: counting, Data: evalData(1)}}}
	for range 2 {
		result, err := o.Run(t.Context(), 0, options...)
		require.NoError(t, err)
		require.Equal(t, 20, result.State)
	}
	require.Equal(t, []string{"1:10", "2:10", "1:10", "2:10"}, loops)
	require.Nil(t, options[:2][1])
}
