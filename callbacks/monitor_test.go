package callbacks_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

var nan, inf = math.NaN(), math.Inf(1)

// following is a loop that logs a loss after another, and the data for it; its state is the number of the step.
func following(entry string, values ...float64) (loop.Loop[int, int], loop.Data[int]) {
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, _, i int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss(entry, values[i])
		return i + 1, logs, nil
	}))

	return loop.New(step), numbers(len(values))
}

// bettered returns the steps in which an entry was better than before.
func bettered(t *testing.T, entry string, mode loop.Mode, values []float64, options ...callbacks.Monitor) (steps []int64) {
	l, data := following(entry, values...)
	note := func(_ context.Context, r loop.Report) error { steps = append(steps, r.Elapsed.Steps); return nil }
	_, err := l.Run(t.Context(), 0, data, callbacks.OnBest(entry, note, append([]callbacks.Monitor{{Mode: mode}}, options...)...))
	require.NoError(t, err)
	return steps
}

func TestB68_autoMode(t *testing.T) {
	for entry, mode := range map[string]loop.Mode{
		"loss": loop.Lowest, "mse": loop.Lowest, "losses.mse_test": loop.Lowest, "test_loss": loop.Lowest,
		"acc": loop.Highest, "accuracy": loop.Highest, "auc": loop.Highest, "pr_auc": loop.Highest, "rocauc": loop.Highest,
		"accuracy_test": loop.Highest, "metrics.accuracy_test": loop.Highest, "val-Accuracy": loop.Highest, "top5/acc_valid": loop.Highest,
		"auc_loss": loop.Lowest, "accuracy_loss_test": loop.Lowest,
	} {
		got, err := better.Of(loop.Mode(0), entry)
		require.NoError(t, err)
		require.Equal(t, mode, got, entry)
	}
	for _, entry := range []string{"back", "", "accelerate", "acceptance", "score"} {
		_, err := better.Of(loop.Mode(0), entry)
		require.EqualError(t, err, fmt.Sprintf("it is not known whether a lower or a higher %q is better", entry))
	}
	for entry, hint := range map[string]string{"val_los": "val_loss", "val-Acuracy": "val-accuracy", "losses.perplexit_test": "", "cost": "", "map": ""} {
		_, err := better.Of(loop.Mode(0), entry)
		if hint != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", hint)
		}
		require.EqualError(t, err, fmt.Sprintf("it is not known whether a lower or a higher %q is better%s", entry, hint))
	}
	require.Equal(t, "by name lowest highest Mode(3)", fmt.Sprint(loop.Mode(0), loop.Lowest, loop.Highest, loop.Mode(3)))
	l, data := following("auc", 1, 2)
	_, err := l.Run(t.Context(), 0, data, callbacks.StopEarly("auc", loop.Steps(1), callbacks.Monitor{Mode: loop.Mode(7)}))
	require.EqualError(t, err, "loop: callback 1 (on each auc: stop early): mode must be Lowest or Highest, got Mode(7): give callbacks.Monitor{Mode: loop.Lowest} or loop.Highest")
	require.Equal(t, []int64{1, 2}, bettered(t, "auc", 0, []float64{1, 2, 1.5}))
	for _, c := range []loop.Option{callbacks.StopEarly("val_loss", loop.Steps(1), callbacks.Monitor{Mode: loop.Highest}), callbacks.KeepBest("val_loss", callbacks.Monitor{Mode: loop.Highest}),
		callbacks.OnBest("val_loss", func(context.Context, loop.Report) error { return nil }, callbacks.Monitor{Mode: loop.Highest}), callbacks.ReduceOnPlateau("val_loss", 0.5, loop.Steps(1), callbacks.Monitor{Mode: loop.Highest})} {
		_, err := l.Run(t.Context(), 0, data, c)
		require.ErrorContains(t, err, `the mode is highest, but by its name "val_loss" is better when lower: use Lowest, or no mode; if this is intended, set AgainstName`)
	}
	for entry, mode := range map[string]loop.Mode{"val_accuracy": loop.Lowest, "f1": loop.Lowest, "class_precision": loop.Lowest, "rmse": loop.Highest, "val_crossentropy": loop.Highest} {
		require.Error(t, better.Against(mode, entry), entry)
	}
	for _, entry := range []string{"score", "layer2", "policy_entropy", "conf1", "penalty", "dice"} { // not known
		require.NoError(t, better.Against(loop.Highest, entry), entry)
		require.NoError(t, better.Against(loop.Lowest, entry), entry)
	}
	require.Equal(t, []int64{1, 3}, bettered(t, "mse", 0, []float64{2, 2, 1.5}))
	require.Equal(t, []int64{1, 3}, bettered(t, "auc", loop.Lowest, []float64{2, 2, 1.5}, callbacks.Monitor{AgainstName: true}), "what is said goes before the name")
}

func TestD05_minDelta_andBaseline(t *testing.T) {
	for _, row := range []struct {
		name    string
		mode    loop.Mode
		options []callbacks.Monitor
		values  []float64
		want    []int64
	}{
		{name: "equal is no better", mode: loop.Lowest, values: []float64{3, 3, 2, 2}, want: []int64{1, 3}},
		{name: "more than the delta", mode: loop.Lowest, options: []callbacks.Monitor{{MinDelta: 1}}, values: []float64{5, 4, 3.5, 2.5}, want: []int64{1, 3}},
		{name: "upwards", mode: loop.Highest, options: []callbacks.Monitor{{MinDelta: 1}}, values: []float64{1, 2, 2.5, 3.5}, want: []int64{1, 3}},
		{name: "baseline", mode: loop.Lowest, options: []callbacks.Monitor{{Baseline: new(2.0)}}, values: []float64{5, 2, 1}, want: []int64{3}},
		{name: "baseline and delta", mode: loop.Lowest, options: []callbacks.Monitor{{Baseline: new(2.0), MinDelta: 1}}, values: []float64{1, 0.5}, want: []int64{2}},
		{name: "what is not finite is no better", mode: loop.Lowest, values: []float64{nan, inf, -inf, 7, nan, -inf, 6}, want: []int64{4, 7}},
		{name: "nor upwards", mode: loop.Highest, values: []float64{inf, nan, 7, inf, 8}, want: []int64{3, 5}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, bettered(t, "x", row.mode, row.values, row.options...))
		})
	}
}

func TestMonitor_refusesBadSettings(t *testing.T) {
	watch := func(context.Context, loop.Report) error { return nil }
	steps := loop.Steps(1)
	for _, row := range []struct {
		name, err string
		option    loop.Option
	}{
		{"no entry", "malformed name: no entry to watch", callbacks.StopEarly("", steps, callbacks.Monitor{Mode: loop.Lowest})},
		{"negative delta", "min delta must be zero or positive and finite, got -1", callbacks.KeepBest("x", callbacks.Monitor{MinDelta: -1, Mode: loop.Lowest})},
		{"delta NaN", "min delta must be zero or positive and finite, got NaN", callbacks.OnBest("x", watch, callbacks.Monitor{MinDelta: nan, Mode: loop.Lowest})},
		{"baseline", "baseline must be finite, got NaN", callbacks.StopEarly("x", steps, callbacks.Monitor{Baseline: new(nan), Mode: loop.Lowest})},
		{"no function", "no function given", callbacks.OnBest("x", nil, callbacks.Monitor{Mode: loop.Lowest})},
		{"no patience", "no patience given; use Steps, Samples, Time or Evaluations", callbacks.StopEarly("x", nil, callbacks.Monitor{Mode: loop.Lowest})},
		{"cooldown of a stop", "Cooldown is set, but only ReduceOnPlateau uses it", callbacks.StopEarly("x", steps, callbacks.Monitor{Cooldown: steps, Mode: loop.Lowest})},
		{"min rate of a keeper", "MinRate is set, but only ReduceOnPlateau uses it", callbacks.KeepBest("x", callbacks.Monitor{MinRate: 1, Mode: loop.Lowest})},
		{"on reduce of a watcher", "OnReduce is set, but only ReduceOnPlateau uses it", callbacks.OnBest("x", watch,
			callbacks.Monitor{OnReduce: func(context.Context, loop.Report, float64, float64) error { return nil }}, callbacks.Monitor{Mode: loop.Lowest})},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, data := following("x", 1)
			result, err := l.Run(t.Context(), 0, data, row.option)
			require.ErrorContains(t, err, row.err)
			require.Regexp(t, `^loop: (callback|change) 1 \(`, err.Error())
			require.Equal(t, loop.Failed, result.Reason)
			require.Zero(t, result.Elapsed.Steps)
		})
	}
	for _, err := range []error{
		second(byHand(callbacks.StopEarly("", steps, callbacks.Monitor{Mode: loop.Lowest}))), second(callbacks.KeepBest("", callbacks.Monitor{Mode: loop.Lowest}).Start(loop.Beginning{})),
		second(byHand(callbacks.OnBest("", watch, callbacks.Monitor{Mode: loop.Lowest}))),
		second(callbacks.ReduceOnPlateau("", 0.5, steps, callbacks.Monitor{Mode: loop.Lowest}).Start(loop.Beginning{})), second(byHand(callbacks.WarnSpike("", 2, 1, nil))),
		second(callbacks.NonFinite(callbacks.Recovery{Entries: []string{""}}).Start(loop.Beginning{})),
	} {
		require.ErrorIs(t, err, records.ErrName)
	}
}

func second[T any](_ T, err error) error { return err }

// Jaxloop warns and Ciclo fails at the first turn; lazo ends the run when no task can log the name.
func TestB66_missingEntry(t *testing.T) {
	for _, option := range []loop.Option{
		callbacks.StopEarly("los", loop.Steps(1), callbacks.Monitor{Mode: loop.Lowest}), callbacks.KeepBest("los", callbacks.Monitor{Mode: loop.Lowest}), callbacks.WarnSpike("los", 2, 1, func(context.Context, callbacks.Spike) error { return nil }),
		callbacks.OnBest("los", func(context.Context, loop.Report) error { return nil }, callbacks.Monitor{Mode: loop.Lowest}), callbacks.NonFinite(callbacks.Recovery{Entries: []string{"los"}}),
	} {
		l, data := following("loss", 1, 2, 3)
		result, err := l.Run(t.Context(), 0, data, option)
		require.ErrorIs(t, err, loop.ErrNoEntry)
		require.ErrorContains(t, err, `"los" (did you mean losses.loss?); there are: losses.loss`)
		require.EqualValues(t, 1, result.Elapsed.Steps)
	}
	stop, err := byHand(callbacks.StopEarly("los", loop.Steps(1), callbacks.Monitor{Mode: loop.Lowest}))
	require.NoError(t, err)
	var logs loop.Logs
	logs.Loss("loss", 1)
	require.ErrorIs(t, stop.Watch(t.Context(), loop.Report{Logs: logs}), loop.ErrNoEntry)
}

// The law of all that watches a value: the values that were better are those that a plain search finds.
func TestOnBest_isTheRunningBest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{-2, -1, 0, 1, 2, 3, nan, inf, -inf}), 1, 30).Draw(rt, "values")
		highest := rapid.Bool().Draw(rt, "highest")
		delta := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(rt, "delta")
		mode, sign := loop.Lowest, 1.0
		if highest {
			mode, sign = loop.Highest, -1
		}
		var want []int64
		best := math.MaxFloat64
		for i, v := range values {
			if v = sign * v; !math.IsNaN(v) && !math.IsInf(v, 0) && best-v > delta {
				best, want = v, append(want, int64(i+1))
			}
		}
		require.Equal(rt, want, bettered(t, "x", mode, values, callbacks.Monitor{MinDelta: delta}))
		l, data := following("x", values...)
		result, err := l.Run(t.Context(), 0, data)
		require.NoError(rt, err)
		value, at, err := result.History.Best("x", mode)
		if len(want) == 0 {
			require.ErrorIs(rt, err, loop.ErrNonFinite)
			return
		}
		require.NoError(rt, err)
		if delta == 0 {
			require.Equal(rt, want[len(want)-1], at.Steps)
			require.Equal(rt, sign*best, value)
		}
	})
}
