package callbacks_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// stopped runs to the end and gives the error that asked for it, nil if there was none.
func stopped(t require.TestingT, entry string, values []float64, options ...loop.Option) (loop.Result[int], *callbacks.EarlyStopError) {
	l, data := following(entry, values...)
	result, err := l.Run(context.Background(), 0, data, options...)
	require.NoError(t, err)
	if result.Reason != loop.Stopped {
		require.Equal(t, loop.DataEnded, result.Reason)
		require.NoError(t, result.Stop)
		return result, nil
	}
	var early *callbacks.EarlyStopError
	require.ErrorAs(t, result.Stop, &early)
	require.ErrorIs(t, result.Stop, loop.ErrStop)
	return result, early
}

func TestB65_B70_B73_B74_B108_stopEarly(t *testing.T) {
	for _, row := range []struct {
		name     string
		entry    string
		mode     loop.Mode
		patience callbacks.Patience
		options  []callbacks.Monitor
		values   []float64
		steps    int64
		best     float64
		at       int64
		text     string
	}{
		{name: "B70: only after the third", entry: "x", mode: loop.Lowest, patience: callbacks.Evaluations(2), values: []float64{10, 11, 12, 13}, steps: 3, best: 10, at: 1,
			text: "loop: step 3: on each x: stop early: no value of x below 10 (of step 1) for 2 evaluations: stop"},
		{name: "B74: on the fourth", entry: "x", mode: loop.Lowest, patience: callbacks.Evaluations(2), values: []float64{1, 0.5, 0.6, 0.7, 0.8}, steps: 4, best: 0.5, at: 2,
			text: "loop: step 4: on each x: stop early: no value of x below 0.5 (of step 2) for 2 evaluations: stop"},
		{name: "B108: four epochs", entry: "loss", mode: 0, patience: callbacks.Evaluations(3), values: []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, steps: 4, best: 1, at: 1,
			text: "loop: step 4: on each loss: stop early: no value of loss below 1 (of step 1) for 3 evaluations: stop"},
		{name: "B73: the first best is infinite", entry: "x", mode: loop.Lowest, patience: callbacks.Evaluations(2), values: []float64{nan, nan, nan}, steps: 2, best: inf,
			text: "loop: step 2: on each x: stop early: no finite value of x for 2 evaluations: stop"},
		{name: "B73: upwards", entry: "x", mode: loop.Highest, patience: callbacks.Evaluations(2), values: []float64{inf, nan, nan}, steps: 2, best: -inf,
			text: "loop: step 2: on each x: stop early: no finite value of x for 2 evaluations: stop"},
		{name: "D17: the baseline is to beat from the first value", entry: "x", mode: loop.Lowest, patience: callbacks.Evaluations(3), options: []callbacks.Monitor{{Baseline: new(0.5)}},
			values: []float64{4, 3, 2, 1}, steps: 3, best: 0.5, text: "loop: step 3: on each x: stop early: no value of x below the baseline 0.5 for 3 evaluations: stop"},
		{name: "D05: min delta", entry: "accuracy", mode: 0, patience: callbacks.Evaluations(2), options: []callbacks.Monitor{{MinDelta: 0.1}},
			values: []float64{0.5, 0.55, 0.6, 0.9}, steps: 3, best: 0.5, at: 1,
			text: "loop: step 3: on each accuracy: stop early: no value of accuracy more than 0.1 above 0.5 (of step 1) for 2 evaluations: stop"},
		{name: "steps from the best", entry: "x", mode: loop.Lowest, patience: loop.Steps(3), values: []float64{5, 4, 3, 3, 3, 3, 3}, steps: 6, best: 3, at: 3,
			text: "loop: step 6: on each x: stop early: no value of x below 3 (of step 3) for 3 steps: stop"},
		{name: "steps from the first value", entry: "x", mode: loop.Lowest, patience: loop.Steps(3), values: []float64{nan, nan, nan, nan, nan}, steps: 4, best: inf,
			text: "loop: step 4: on each x: stop early: no finite value of x for 3 steps: stop"},
		{name: "samples", entry: "x", mode: loop.Lowest, patience: loop.Samples(2), values: []float64{5, 6, 6, 6}, steps: 3, best: 5, at: 1,
			text: "loop: step 3: on each x: stop early: no value of x below 5 (of step 1) for 2 samples: stop"},
		{name: "a better value in the last moment", entry: "x", mode: loop.Lowest, patience: callbacks.Evaluations(2), values: []float64{5, 6, 4, 6, 3}, steps: 5},
		{name: "a NaN is no better and no end", entry: "x", mode: loop.Lowest, patience: callbacks.Evaluations(2), values: []float64{5, nan, 4, nan}, steps: 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, early := stopped(t, row.entry, row.values, callbacks.StopEarly(row.entry, row.patience, append([]callbacks.Monitor{{Mode: row.mode}}, row.options...)...))
			require.Equal(t, row.steps, result.Elapsed.Steps)
			require.EqualValues(t, row.steps, result.State, "the last state, not the best")
			if row.text == "" {
				require.Nil(t, early)
				return
			}
			require.EqualError(t, result.Stop, row.text)
			require.Equal(t, row.best, early.Best)
			require.Equal(t, row.at, early.At.Steps)
		})
	}
}

func TestD17_noPatienceIsAnError(t *testing.T) {
	for _, p := range []callbacks.Patience{loop.Steps(0), loop.Samples(0), loop.Time(0), callbacks.Evaluations(0), callbacks.Evaluations(-1)} {
		l, data := following("x", 1, 2)
		_, err := l.Run(t.Context(), 0, data, callbacks.StopEarly("x", p, callbacks.Monitor{Mode: loop.Lowest}))
		require.ErrorContains(t, err, "stop early): patience must be positive, got "+p.String()+": with none, the first value would be the last, also a better one")
	}
}

// Ciclo takes the time from the start of the loop, and would end this run at its seventh second.
func TestD05_timeIsMeasuredFromTheBest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			time.Sleep(time.Second)
			var logs loop.Logs
			logs.Loss("loss", math.Max(0, float64(10-s)))
			return s + 1, logs, nil
		}))

		result, err := loop.New(slow).Run(t.Context(), 0, numbers(100), callbacks.StopEarly("loss", loop.Time(7*time.Second)))
		require.NoError(t, err)
		require.Equal(t, loop.Stopped, result.Reason)
		require.Equal(t, 18*time.Second, result.Elapsed.Time)
		var early *callbacks.EarlyStopError
		require.ErrorAs(t, result.Stop, &early)
		require.Equal(t, 11*time.Second, early.At.Time)
	})
}

// One option serves any number of runs, which share no values.
func TestStopEarly_oneOptionForManyRuns(t *testing.T) {
	option := callbacks.StopEarly("x", callbacks.Evaluations(2), callbacks.Monitor{Mode: loop.Lowest})
	for _, values := range [][]float64{{1, 2, 3, 4}, {10, 11, 12, 13}} {
		result, _ := stopped(t, "x", values, option)
		require.EqualValues(t, 3, result.Elapsed.Steps)
	}
}

// Wherever a run is interrupted and resumed with its history, it stops where the uninterrupted one does.
func TestStopEarly_resumes(t *testing.T) {
	cuts := 0
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, 3, 4, nan}), 2, 25).Draw(rt, "values")
		patience := rapid.SampledFrom([]callbacks.Patience{callbacks.Evaluations(1), callbacks.Evaluations(3), loop.Steps(2), loop.Steps(4)}).Draw(rt, "patience")
		option := callbacks.StopEarly("x", patience, callbacks.Monitor{MinDelta: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "delta")}, callbacks.Monitor{Mode: loop.Lowest})
		whole, early := stopped(rt, "x", values, option)
		cut := rapid.Int64Range(1, whole.Elapsed.Steps).Draw(rt, "cut")
		if cut == whole.Elapsed.Steps {
			return // it is over then
		}
		l, _ := following("x", values...)
		part, err := l.Run(t.Context(), 0, numbers(len(values)), option, loop.Until(loop.Steps(cut)))
		require.NoError(rt, err)
		left := func(yield func(int, error) bool) {
			for i := int(cut); i < len(values) && yield(i, nil); i++ {
			}
		}
		resumed, err := l.Run(t.Context(), part.State, rest[int](left), option, loop.Continue(part.Elapsed, part.History))
		require.NoError(rt, err)
		require.Equal(rt, whole.Elapsed.Steps, resumed.Elapsed.Steps)
		require.Equal(rt, whole.Reason, resumed.Reason)
		if early != nil {
			var again *callbacks.EarlyStopError
			require.ErrorAs(rt, resumed.Stop, &again)
			require.Equal(rt, early.At.Steps, again.At.Steps)
		}
		cuts++
	})
	t.Logf("%d cut runs stopped where the unbroken ones did", cuts)
}

// Values of an earlier run that cannot be read are an error, not a fresh start.
func TestStopEarly_resumeFails(t *testing.T) {
	boom := errors.New("the device is gone")
	var logs loop.Logs
	logs.Set(loop.Losses, "x", broken{boom})
	var history loop.History
	history.Commit(loop.Elapsed{Steps: 1}, logs, 1)
	l, data := following("x", 1, 2)
	for _, option := range []loop.Option{callbacks.StopEarly("x", loop.Steps(9), callbacks.Monitor{Mode: loop.Lowest}), callbacks.OnBest("x", func(context.Context, loop.Report) error { return nil }, callbacks.Monitor{Mode: loop.Lowest})} {
		_, err := l.Run(t.Context(), 0, rest(data), option, loop.Continue(loop.Elapsed{Steps: 1}, &history))
		require.ErrorIs(t, err, boom)
		require.ErrorContains(t, err, "earlier values: ")
	}
}

type broken struct{ err error }

func (b broken) Float() (float64, error) { return 0, b.err }

func TestStopEarly_valueThatCannotBeRead(t *testing.T) {
	boom := errors.New("the device is gone")
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "x", broken{boom})
		return s, logs, nil
	}))

	_, err := loop.New(step).Run(t.Context(), 0, numbers(2), callbacks.StopEarly("x", loop.Steps(9), callbacks.Monitor{Mode: loop.Lowest}))
	require.ErrorIs(t, err, boom)
}
