package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

func TestLogs_lookUp(t *testing.T) {
	var logs loop.Logs
	logs.Loss("loss", 1)
	logs.Metric("loss", 2)
	logs.Metric("accuracy", 3)
	for _, row := range []struct {
		name string
		want float64
		err  string
	}{
		{name: "accuracy", want: 3},
		{name: "metrics.accuracy", want: 3},
		{name: "losses.loss", want: 1},
		{name: "metrics.loss", want: 2},
		{name: "loss", err: `loop: ambiguous name: "loss"; say one of: losses.loss, metrics.loss, metrics.accuracy`},
		{name: "los", err: `loop: no such entry: "los"; logged are: losses.loss, metrics.loss, metrics.accuracy`},
		{name: "losses.accuracy", err: `loop: no such entry: "losses.accuracy"; logged are: losses.loss, metrics.loss, metrics.accuracy`},
	} {
		got, err := logs.Float(row.name)
		if row.err != "" {
			require.EqualError(t, err, row.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, row.want, got)
	}
	_, err := (loop.Logs{}).Get("x")
	require.ErrorIs(t, err, loop.ErrNoEntry)
}

func TestLogs_mergeDoesNotTouchTheSource(t *testing.T) {
	var a, b loop.Logs
	a.Loss("loss", 1)
	var turn loop.Logs
	turn.Merge(a)
	turn.Loss("extra", 9)
	b.Loss("loss", 2)
	turn.Merge(b)
	require.Equal(t, 1, a.Len())
	v, err := a.Float("loss")
	require.NoError(t, err)
	require.Equal(t, 1.0, v)
	v, err = turn.Float("loss")
	require.NoError(t, err)
	require.Equal(t, 2.0, v, "the later one stays")
	require.Equal(t, 2, turn.Len())
}

func TestHistory_missingNamesListWhatThereIs(t *testing.T) {
	result, err := loop.New(loop.OnFunc(loop.EachStep, add)).Run(t.Context(), 0, numbers(3))
	require.NoError(t, err)
	_, _, err = result.History.Series("loss")
	require.EqualError(t, err, `loop: history: no such entry: "loss"; logged were: metrics.sum`)
	_, err = result.History.Last("loss")
	require.ErrorIs(t, err, loop.ErrNoEntry)
	_, err = (&loop.History{}).Mean("x")
	require.ErrorIs(t, err, loop.ErrNoEntry)
}
