package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

func TestLogs_anErrorListsNotEverything(t *testing.T) {
	var logs loop.Logs
	for i := range 1000 {
		logs.Metric(fmt.Sprint("m", i), 0)
	}
	_, err := logs.Get("perplexity")
	require.ErrorContains(t, err, "metrics.m19 and 980 more")
	require.Less(t, len(err.Error()), 1000)
}

func TestB02_logsWithoutAState(t *testing.T) {
	n := 0
	step := func(_ context.Context, s any, _ int) (any, loop.Logs, error) {
		n++
		var logs loop.Logs
		logs.Set("a", "x", n)
		logs.Set("b", "y", 10*n)
		return s, logs, nil
	}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), nil, loop.Data[int](forever), loop.Until(loop.Steps(3)))
	require.NoError(t, err)
	require.Nil(t, result.State)
	columns, err := result.History.Collect("x", "y")
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1, 2, 3}, {10, 20, 30}}, columns)
	t.Logf("B02: %v, state %v", columns, result.State)
}

func TestB10_eachCollection(t *testing.T) {
	var logs loop.Logs
	logs.Loss("l", 1)
	logs.Metric("m", 2)
	logs.Stateful("s", 3)
	logs.Output("o", 4)
	logs.Set("mine", "x", 5)
	logs.Loss("both", 6, loop.Metrics)
	var got []string
	for e := range logs.All() {
		v, err := e.Value.Float()
		require.NoError(t, err)
		got = append(got, fmt.Sprint(e.Path(), " ", v))
	}
	require.Equal(t, []string{"losses.l 1", "metrics.m 2", "stateful_metrics.s 3", "outputs.o 4", "mine.x 5", "losses.both 6", "metrics.both 6"}, got)
	t.Logf("B10: %d entries, each where it belongs", len(got))
}

// Ciclo has Merge twice: as a method and as a property that can be written only (B12: reading it fails). Here there is
// the method alone, which gives nothing to read.
func TestB11_B12_mergeIntoEmptyLogs(t *testing.T) {
	var source, logs loop.Logs
	source.Metric("m", 2)
	var merge func(loop.Logs) = logs.Merge
	merge(source)
	require.Equal(t, slices.Collect(source.All()), slices.Collect(logs.All()))
	logs.Merge(loop.Logs{})
	require.Equal(t, 1, logs.Len())
	t.Logf("B11, B12: %d entry by Merge, which gives nothing to read", logs.Len())
}

func TestLogs_mergeDoesNotTouchTheSource(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(turn *loop.Logs)
	}{
		{"replace", func(turn *loop.Logs) { turn.Loss("loss", 9) }},
		{"add", func(turn *loop.Logs) { turn.Loss("extra", 9) }},
		{"add, then replace", func(turn *loop.Logs) { turn.Loss("extra", 9); turn.Loss("loss", 9) }},
		{"merge", func(turn *loop.Logs) { var b loop.Logs; b.Loss("loss", 2); turn.Merge(b) }},
		{"suffix, then replace", func(turn *loop.Logs) { s := turn.Suffix(""); s.Loss("loss", 9) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			var source, turn loop.Logs
			source.Loss("loss", 1)
			source.Loss("second", 2)
			turn.Merge(source)
			row.do(&turn)
			require.Equal(t, 2, source.Len())
			v, err := source.Float("loss")
			require.NoError(t, err)
			require.Equal(t, 1.0, v)
		})
	}
}

// The laws of Merge, against a map that keeps its order.
func TestLogs_mergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := someLogs(t, "a"), someLogs(t, "b"), someLogs(t, "c")
		beforeB := entries(b)
		merged := merge(a, b)
		want := entries(a)
		for _, e := range entries(b) {
			if i := slices.IndexFunc(want, func(o loop.Entry) bool { return o.Path() == e.Path() }); i >= 0 {
				want[i] = e
			} else {
				want = append(want, e)
			}
		}
		require.Equal(t, want, entries(merged), "the last writer wins")
		require.Equal(t, entries(a), entries(merge(a, a)), "merging with itself changes nothing")
		require.Equal(t, entries(merge(merge(a, b), c)), entries(merge(a, merge(b, c))), "associative")
		require.Equal(t, entries(a), entries(merge(a, loop.Logs{})))
		require.Equal(t, entries(a), entries(merge(loop.Logs{}, a)))
		for _, e := range entries(a) {
			merged.Set(e.Collection, e.Name, -1)
		}
		require.Equal(t, beforeB, entries(b), "the source is not touched")
		for e := range merged.All() {
			found, err := merged.Get(e.Path())
			require.NoError(t, err)
			require.Equal(t, e, found, "every entry can be reached by its path")
		}
	})
}

func entries(l loop.Logs) []loop.Entry { return append([]loop.Entry{}, slices.Collect(l.All())...) }

func merge(all ...loop.Logs) (merged loop.Logs) {
	for _, l := range all {
		merged.Merge(l)
	}
	return merged
}

func someLogs(t *rapid.T, label string) (logs loop.Logs) {
	for range rapid.IntRange(0, 6).Draw(t, label) {
		logs.Set(rapid.SampledFrom([]loop.Collection{loop.Losses, loop.Metrics, "x"}).Draw(t, "collection"),
			rapid.SampledFrom([]string{"a", "b", "a.b", "metrics.a"}).Draw(t, "name"), rapid.IntRange(0, 99).Draw(t, "value"))
	}
	return logs
}

func TestLogs_suffix(t *testing.T) {
	var logs loop.Logs
	logs.Loss("loss", 1)
	logs.Metric("accuracy", 2)
	v, err := logs.Suffix("test").Float("losses.loss_test")
	require.NoError(t, err)
	require.Equal(t, 1.0, v)
	require.Equal(t, entries(logs), entries(logs.Suffix("")))
	_, err = logs.Get("loss")
	require.NoError(t, err, "the original keeps its names")
}

func TestLogs_outputsOfAnyType(t *testing.T) {
	for _, row := range []struct {
		name   string
		output any
		want   float64
		err    string
	}{
		{name: "array", output: []float32{1, 2}, err: "loop: outputs.o: []float32 is not a number"},
		{name: "text", output: "cat", err: "loop: outputs.o: string is not a number"},
		{name: "nil", output: nil, err: "loop: outputs.o: <nil> is not a number"},
		{name: "float32", output: float32(0.5), want: 0.5},
		{name: "int", output: -3, want: -3},
		{name: "uint8", output: uint8(200), want: 200},
	} {
		t.Run(row.name, func(t *testing.T) {
			var logs loop.Logs
			logs.Output("o", row.output)
			v, err := logs.Float("o")
			if row.err != "" {
				require.EqualError(t, err, row.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, row.want, v)
			e, err := logs.Get("o")
			require.NoError(t, err)
			got, err := e.Any()
			require.NoError(t, err)
			require.Equal(t, row.output, got)
		})
	}
	var logs loop.Logs
	logs.Set(loop.Losses, "loss", nil)
	_, err := logs.Float("loss")
	require.EqualError(t, err, "loop: losses.loss: <nil> is not a number")
}

// late is a value that has to be fetched, and counts how often.
type late struct {
	fetched *int
	value   float64
	err     error
}

func (l late) Float() (float64, error) { *l.fetched++; return l.value, l.err }

// S65: logs print as numbers, not as pointers.
func TestLogs_String(t *testing.T) {
	var logs loop.Logs
	require.Empty(t, logs.String())
	logs.Loss("loss", 0.25)
	logs.Metric("accuracy", float64(float32(0.1)))
	logs.Output("preds", []float32{1, 2})
	logs.Set(loop.Outputs, "broken", late{new(int), 0, errors.New("the device is gone")})
	require.Equal(t, "loss=0.25 accuracy=0.1 preds=([]float32 is not a number) broken=(the device is gone)", fmt.Sprint(logs))
}

func TestLogs_errorOfAValue(t *testing.T) {
	lost := errors.New("device lost")
	var logs loop.Logs
	logs.Set(loop.Losses, "loss", late{new(int), 0, lost})
	_, err := logs.Float("loss")
	require.ErrorIs(t, err, lost)
	require.EqualError(t, err, "loop: losses.loss: device lost")
}

func TestLogs_allocations(t *testing.T) {
	var source loop.Logs
	source.Metric("m", 1)
	number := loop.Value(late{new(int), 2, nil})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var turn loop.Logs
		turn.Merge(source)
		if _, err := turn.Float("metrics.m"); err != nil {
			t.Fatal(err)
		}
	}), "taking over the logs of the one task that logs, and reading")
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		var logs loop.Logs
		for _, name := range []string{"a", "b", "c"} {
			logs.Set(loop.Metrics, name, number)
		}
	}), 1.0)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		var logs loop.Logs
		for i, name := range []string{"a", "b", "c"} {
			logs.Metric(name, float64(i))
		}
	}), 1.0, "numbers lie beside their entries")
}

func TestLogs_aCopyGoesOnByItself(t *testing.T) {
	var base loop.Logs
	base.Metric("a", 1)
	one, two := base, base
	one.Metric("b", 2)
	two.Metric("b", 3)
	two.Metric("c", 4)
	for _, row := range []struct {
		logs loop.Logs
		want map[string]float64
	}{
		{base, map[string]float64{"a": 1}}, {one, map[string]float64{"a": 1, "b": 2}}, {two, map[string]float64{"a": 1, "b": 3, "c": 4}},
	} {
		require.Equal(t, len(row.want), row.logs.Len())
		for name, want := range row.want {
			got, err := row.logs.Float(name)
			require.NoError(t, err)
			require.Equal(t, want, got, name)
		}
	}
}
