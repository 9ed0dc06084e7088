package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// Jaxloop's inner and outer loops, written with package loop: an inner loop is the steps between two borders.

// counting logs the state before its step, as "n" and as a loss.
var counting = loop.StepFunc[int, int](func(_ context.Context, state, _ int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Output("n", float64(state))
	logs.Loss("loss", float64(state))
	return state + 1, logs, nil
})

const endless = math.MaxInt

// everyInner is due at each n-th border of inner loops.
func everyInner(n int) loop.Schedule { return loop.Every(loop.Steps(10 * n)) }

// noting notes the steps of the borders at which it is called.
func noting(into *[]int64) func(context.Context, loop.Report) error {
	return func(_ context.Context, r loop.Report) error {
		*into = append(*into, r.Elapsed.Steps)
		return nil
	}
}

func series(t require.TestingT, h *loop.History, name string) []float64 {
	_, values, err := h.Series(name)
	require.NoError(t, err)
	return values
}

func TestB32_oneInnerLoop(t *testing.T) {
	begin, end := -1, -1
	see := func(state *int) func(context.Context, loop.Report) error {
		return func(_ context.Context, r loop.Report) error {
			*state = r.State().(int)
			return nil
		}
	}
	result, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), 0, upTo(10),
		loop.Watch(loop.AtStart, see(&begin)), loop.Watch(loop.AtEnd, see(&end)))
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, series(t, result.History, "n"))
	require.Equal(t, []int{0, 10, 10}, []int{begin, end, result.State})
	require.Equal(t, loop.DataEnded, result.Reason)
	t.Logf("begin saw %d, end saw %d", begin, end)
}

func TestB34_fromStep5(t *testing.T) {
	result, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), 5, upTo(endless),
		loop.Until(loop.Steps(10)), loop.Continue(loop.Elapsed{Steps: 5}, nil))
	require.NoError(t, err)
	require.Equal(t, []float64{5, 6, 7, 8, 9}, series(t, result.History, "n"))
	require.Equal(t, 10, result.State)
	require.Equal(t, loop.UntilReached, result.Reason)
}

func TestB37_intervalsOfActions(t *testing.T) {
	for _, row := range []struct {
		loops int
		want  []int
	}{{1, []int{1, 0, 0}}, {2, []int{2, 1, 0}}, {6, []int{6, 3, 2}}} {
		counts := make([]int, 3)
		var options []loop.Option
		for i := range counts {
			options = append(options, loop.Watch(everyInner(i+1), func(context.Context, loop.Report) error { counts[i]++; return nil }))
		}
		_, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), 0, upTo(10*row.loops), options...)
		require.NoError(t, err)
		require.Equal(t, row.want, counts)
		t.Logf("after %d inner loops: %v", row.loops, counts)
	}
}

func TestB41_B42_listsOfAnEvaluation(t *testing.T) {
	one := loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("one", 1)
		return s, logs, nil
	})
	all := loop.Evaluate[int, int]("all", one, upTo(10))
	result, logs, err := all.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, series(t, result.History, "one"))
	piped := loop.Evaluate[int, int]("piped", one, upTo(99), loop.Until(loop.Steps(10)))
	piped.Aggregate = map[loop.Collection]loop.Aggregation{loop.Metrics: {Name: "sum", Of: total}}
	_, sums, err := piped.Run(t.Context(), 0)
	require.NoError(t, err)
	mean, err := logs.Float("one_all")
	require.NoError(t, err)
	sum, err := sums.Float("one_piped")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 10}, []float64{mean, sum})
	t.Logf("mean %g, sum %g", mean, sum)
}

func TestB43_B46_outputsOfTheLastInnerLoop(t *testing.T) {
	result, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), 0, upTo(endless), loop.Until(loop.Steps(100)))
	require.NoError(t, err)
	last := result.History.Since(90)
	require.Equal(t, []float64{90, 91, 92, 93, 94, 95, 96, 97, 98, 99}, series(t, last, "n"))
	outputs := last.Aggregate(nil)
	for name, want := range map[string]float64{"loss": 94.5, "n": 99} { // the mean, the last
		v, err := outputs.Float(name)
		require.NoError(t, err)
		require.Equal(t, want, v)
	}
	require.Equal(t, 100, result.History.Len())
	t.Logf("outputs of %d steps", last.Len())
}

// After a stop, the evaluation and the other actions of that border are still called, once.
func TestB44_stopFromAnAction(t *testing.T) {
	evaluated, others := 0, 0
	test := loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
		evaluated++
		return counting.Step(ctx, s, b)
	})
	fit := loop.New(loop.On(loop.EachStep, counting), loop.Evaluate[int, int]("test", test, upTo(2)).On(everyInner(1)))
	enough := loop.Watch(everyInner(1), func(context.Context, loop.Report) error { return fmt.Errorf("good: %w", loop.ErrStop) })
	enough.Name = "enough"
	result, err := fit.Run(t.Context(), 0, upTo(endless), enough,
		loop.Watch(everyInner(1), func(context.Context, loop.Report) error { others++; return nil }))
	require.NoError(t, err)
	require.Equal(t, loop.Stopped, result.Reason)
	require.Equal(t, 10, result.State)
	require.ErrorContains(t, result.Stop, "every 10 steps: enough: good: stop")
	require.Equal(t, []int{2, 1}, []int{evaluated, others})
	t.Logf("%v", result.Stop)
}

func TestB49_B53_B54_intervals(t *testing.T) {
	at := func(name string) loop.Evaluation[int, int] {
		return loop.Evaluate[int, int](name, loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			var logs loop.Logs
			logs.Metric("at", float64(s))
			return s, logs, nil
		}), upTo(1))
	}
	result, err := loop.New(
		loop.On(loop.EachStep, counting),
		at("each").On(everyInner(1)), at("second").On(everyInner(2)),
		at("late").On(everyInner(1).And(loop.After(loop.Steps(25)))),
		at("last").On(everyInner(2).Or(loop.At(loop.Steps(55)))),
	).Run(t.Context(), 0, upTo(endless), loop.Until(loop.Steps(55)))
	require.NoError(t, err)
	for name, want := range map[string][]float64{"each": {10, 20, 30, 40, 50}, "second": {20, 40}, "late": {30, 40, 50}, "last": {20, 40, 55}} {
		require.Equal(t, want, series(t, result.History, "at_"+name), name)
		t.Logf("%s: %v", name, want)
	}
}

func TestB64_stepNumber(t *testing.T) {
	var written []int64
	_, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), 0, upTo(1), loop.Watch(loop.EachStep, noting(&written)))
	require.NoError(t, err)
	require.Equal(t, []int64{1}, written)
	t.Logf("%v", written)
}

// The losses of the evaluations are 1.0, 0.5, 0.6, 0.7: with a patience of 2 the fourth one ends the training.
func TestB74_stopInAnEvaluation(t *testing.T) {
	losses := []float64{1.0, 0.5, 0.6, 0.7, 0.8}
	test := loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", losses[s/10-1])
		return s, logs, nil
	})
	fit := loop.New(loop.On(loop.EachStep, counting), loop.Evaluate[int, int]("test", test, upTo(3)).On(everyInner(1)))
	result, err := fit.Run(t.Context(), 0, upTo(endless), callbacks.StopEarly("loss_test", callbacks.Evaluations(2)))
	require.NoError(t, err)
	require.Equal(t, loop.Stopped, result.Reason)
	require.Equal(t, 40, result.State)
	var stop *callbacks.EarlyStopError
	require.ErrorAs(t, result.Stop, &stop)
	require.Equal(t, 0.5, stop.Best)
	t.Logf("%v", result.Stop)
}

// Work in the background: its error is the run's, at the end or, with Strict, when the callback is due next.
func TestB75_background(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		name   string
		err    error
		strict bool
		state  int
		reason loop.Reason
	}{
		{"it is well", nil, false, 40, loop.UntilReached},
		{"it fails", boom, false, 40, loop.Failed},
		{"it fails, strict", boom, true, 20, loop.Failed},
		{"it stops the run", loop.ErrStop, false, 20, loop.Stopped},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
					time.Sleep(time.Second)
					return counting.Step(ctx, s, b)
				})
				save := loop.Watch(everyInner(1), func(_ context.Context, r loop.Report) error {
					time.Sleep(5 * time.Second) // the training continues
					if r.Elapsed.Steps == 10 {
						return row.err
					}
					return nil
				})
				begin := time.Now()
				result, err := loop.New(loop.On(loop.EachStep, slow)).Run(t.Context(), 0, upTo(endless),
					loop.Until(loop.Steps(40)), callbacks.Background{Strict: row.strict}.Of(save))
				if row.reason == loop.Failed {
					require.ErrorIs(t, err, boom)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, row.reason, result.Reason)
				require.Equal(t, row.state, result.State)
				require.Less(t, time.Since(begin), 46*time.Second)
			})
		})
	}
}

// Nothing said about the end: the data ends the run. Nothing said about inner loops: there are none.
func TestD13_nothingSaidAboutSteps(t *testing.T) {
	for _, row := range []struct {
		name   string
		until  loop.Option
		border loop.Schedule
		want   []int64
		reason loop.Reason
	}{
		{"all data", nil, loop.Every(loop.Steps(4)), []int64{4}, loop.DataEnded},
		{"all data, and its end", nil, loop.AtEnd, []int64{7}, loop.DataEnded},
		{"a pass", nil, loop.Every(loop.Epochs(1)), []int64{7}, loop.DataEnded},
		{"passes", loop.Until(loop.Epochs(2)), loop.Every(loop.Epochs(1)), []int64{7, 14}, loop.UntilReached},
		{"until", loop.Until(loop.Samples(5)), loop.Every(loop.Steps(2)), []int64{2, 4}, loop.UntilReached},
		{"until zero", loop.Until(loop.Steps(0)), loop.Every(loop.Steps(2)), nil, loop.UntilReached},
	} {
		t.Run(row.name, func(t *testing.T) {
			var borders []int64
			result, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), 0, upTo(7), row.until, loop.Watch(row.border, noting(&borders)))
			require.NoError(t, err)
			require.Equal(t, row.want, borders)
			require.Equal(t, row.reason, result.Reason)
			t.Logf("%v, %s", borders, result.Reason)
		})
	}
}

// In Jaxloop, 30 steps by 10 with an evaluation of 4 counted batches end at step 38, after inner loops of 10, 10 and 6.
func TestD14_evaluationsLeaveTheTrainingAlone(t *testing.T) {
	var borders []int64
	fit := loop.New(loop.On(loop.EachStep, counting), loop.Evaluate[int, int]("test", counting, upTo(4)).On(everyInner(1)))
	result, err := fit.Run(t.Context(), 0, upTo(endless), loop.Until(loop.Steps(30)), loop.Watch(everyInner(1), noting(&borders)))
	require.NoError(t, err)
	require.Equal(t, 30, result.State)
	require.Equal(t, []int64{10, 20, 30}, borders)
	require.Equal(t, []float64{11.5, 21.5, 31.5}, series(t, result.History, "loss_test"))
	t.Logf("state %d after %v", result.State, borders)
}

func TestD15_aStopGivesTheStateAndTheReason(t *testing.T) {
	stopper := loop.Watch(everyInner(2), func(context.Context, loop.Report) error { return fmt.Errorf("best loss 0.5: %w", loop.ErrStop) })
	result, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), 0, upTo(endless), stopper)
	require.NoError(t, err)
	require.Equal(t, 20, result.State)
	require.Equal(t, loop.Stopped, result.Reason)
	require.ErrorContains(t, result.Stop, "best loss 0.5: stop")
	t.Logf("%v", result.Stop)
}

// Data that ends at a border is followed by no inner loop without a step.
func TestD16_noActionOnAnEmptyLoop(t *testing.T) {
	for batches, want := range map[int][]int64{25: {10, 20}, 20: {10, 20}, 0: nil} {
		var borders []int64
		fit := loop.New(loop.On(loop.EachStep, counting), loop.Evaluate[int, int]("test", counting, upTo(2)).On(everyInner(1)))
		result, err := fit.Run(t.Context(), 0, upTo(batches), loop.Until(loop.Steps(100)), loop.Watch(everyInner(1), noting(&borders)))
		require.NoError(t, err)
		require.Equal(t, want, borders)
		require.Equal(t, loop.DataEnded, result.Reason)
		t.Logf("%d batches: %v", batches, borders)
	}
}

// The borders of a resumed run are those of one run: 55 to 100 by 10 has inner loops of 5, 10, 10, 10 and 10 steps.
func TestInnerLoops_resume(t *testing.T) {
	for _, row := range []struct {
		name        string
		from, total int
		want        []int64
	}{
		{"from nothing", 0, 30, []int64{10, 20, 30}},
		{"55 of 100 by 10", 55, 100, []int64{60, 70, 80, 90, 100}},
		{"at a border", 50, 70, []int64{60, 70}},
		{"the last one is short", 0, 25, []int64{10, 20, 25}},
		{"first and last are one", 52, 58, []int64{58}},
		{"at the total already", 100, 100, nil},
		{"beyond the total", 110, 100, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var borders []int64
			border := everyInner(1).Or(loop.At(loop.Steps(row.total)))
			result, err := loop.New(loop.On(loop.EachStep, counting)).Run(t.Context(), row.from, upTo(endless), loop.Until(loop.Steps(row.total)),
				loop.Continue(loop.Elapsed{Steps: int64(row.from)}, nil), loop.Watch(border, noting(&borders)))
			require.NoError(t, err)
			require.Equal(t, row.want, borders)
			require.Equal(t, max(row.from, row.total), result.State)
		})
	}
}

// Cutting a training in two at any step moves no border: both halves together do what one run does.
func TestInnerLoops_aCutMovesNoBorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 40).Draw(t, "total")
		every := loop.Every(loop.Steps(rapid.IntRange(1, 12).Draw(t, "n")))
		cut := rapid.IntRange(0, total).Draw(t, "cut")
		run := func(from loop.Result[int], to int) (loop.Result[int], []int64) {
			var borders []int64
			fit := loop.New(loop.On(loop.EachStep, counting), loop.Evaluate[int, int]("test", counting, upTo(1)).On(every))
			result, err := fit.Run(context.Background(), from.State, upTo(endless), loop.Until(loop.Steps(to)),
				loop.Continue(from.Elapsed, from.History), loop.Watch(every, noting(&borders)))
			require.NoError(t, err)
			return result, borders
		}
		whole, borders := run(loop.Result[int]{}, total)
		first, firstBorders := run(loop.Result[int]{}, cut)
		second, secondBorders := run(first, total)
		require.Equal(t, borders, append(firstBorders, secondBorders...))
		require.Equal(t, whole.State, second.State)
		if len(borders) > 0 {
			require.Equal(t, series(t, whole.History, "loss_test"), series(t, second.History, "loss_test"))
		}
	})
}

// total is a custom aggregation.
func total(values, _ []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
