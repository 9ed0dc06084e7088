package loop_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

type sized []int

func (s sized) Samples() int { return len(s) }

func TestSamples(t *testing.T) {
	data := func(yield func(sized, error) bool) {
		_ = yield(sized{1, 2, 3}, nil) && yield(sized{4}, nil) && yield(sized{5, 6}, nil)
	}
	var at []int64
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s int, b sized) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("first", float64(b[0]))
		return s + len(b), logs, nil
	})))
	result, err := l.Run(t.Context(), 0, loop.Data[sized](data), loop.Watch(loop.Every(loop.Samples(2)), func(_ context.Context, r loop.Report) error {
		at = append(at, r.Elapsed.Samples)
		return nil
	}))
	require.NoError(t, err)
	require.EqualValues(t, 6, result.Elapsed.Samples)
	require.Equal(t, []int64{3, 4, 6}, at, "the period does not drift: 2, 4, 6 are crossed at 3, 4, 6")
	mean, err := result.History.Mean("first")
	require.NoError(t, err)
	require.InDelta(t, (3*1.0+4+2*5)/6, mean, 1e-12, "weighted by examples")
}

func TestKeep(t *testing.T) {
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(10), loop.Keep(loop.Every(loop.Steps(4))))
	require.NoError(t, err)
	at, _, err := result.History.Series("sum")
	require.NoError(t, err)
	require.Len(t, at, 2)
	require.EqualValues(t, 8, at[1].Steps)
}

// counted is a value that counts how often it is read.
type counted struct{ reads *int }

func (c counted) Float() (float64, error) { *c.reads++; return 1, nil }

func TestNothingIsReadUnasked(t *testing.T) {
	reads := 0
	step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", counted{&reads})
		return s, logs, nil
	}
	var out bytes.Buffer
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(1000), loop.Until(loop.Steps(1000)), callbacks.ProgressBar(&out))
	require.NoError(t, err)
	require.LessOrEqual(t, reads, 11, "a plain bar reads at the start, for each tenth, and at the end")
	reads = 0
	_, err = result.History.Last("loss")
	require.NoError(t, err)
	require.Equal(t, 1, reads)
}

func TestLimitAndThin_boundTheHistoryOfARun(t *testing.T) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	for _, row := range []struct {
		name   string
		option loop.Option
		most   int
		last   []int64
	}{
		{"thin", loop.Thin(10), 10, nil},
	} {
		result, err := l.Run(t.Context(), 0, numbers(1000), row.option)
		require.NoError(t, err)
		at, _, err := result.History.Series("sum")
		require.NoError(t, err)
		require.LessOrEqual(t, len(at), row.most, row.name)
		require.EqualValues(t, 1000, at[len(at)-1].Steps, "the newest is there")
		for i, want := range row.last {
			require.Equal(t, want, at[i].Steps)
		}
	}
	_, err := l.Run(t.Context(), 0, numbers(1), loop.Thin(0))
	require.EqualError(t, err, "loop: thin: rows must be positive, got 0")
}
