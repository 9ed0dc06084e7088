package loop_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

func metric(name string, v float64) (logs loop.Logs) {
	logs.Metric(name, v)
	return logs
}

func at(steps int64) loop.Elapsed { return loop.Elapsed{Steps: steps, Samples: 10 * steps} }

func TestHistory_missingNamesListWhatThereIs(t *testing.T) {
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(3))
	require.NoError(t, err)
	const there = "; there are: elapsed.steps, elapsed.samples, elapsed.batch, elapsed.time, elapsed.date, elapsed.epochs, metrics.sum"
	_, _, err = result.History.Series("loss")
	require.EqualError(t, err, `loop: history: no such entry: "loss"`+there)
	_, err = result.History.Last("sums")
	require.EqualError(t, err, `loop: history: no such entry: "sums" (did you mean metrics.sum?)`+there)
	_, err = result.History.Collect("sum", "step")
	require.EqualError(t, err, `loop: history: no such entry: "step" (did you mean elapsed.steps?)`+there)
	_, err = result.History.Collect("sum.")
	require.ErrorIs(t, err, records.ErrName)
	_, err = (&loop.History{}).Mean("x")
	require.ErrorIs(t, err, loop.ErrNoEntry)
	_, err = (&loop.History{}).Last("steps")
	require.ErrorIs(t, err, loop.ErrNoEntry)
}

func TestD10_rowsThatLackAFullNameAreLeftOut(t *testing.T) {
	var h loop.History
	for i := range int64(6) {
		logs := metric("loss", float64(i))
		if i%2 == 1 {
			logs.Metric("rare", float64(100*i))
		}
		h.Commit(at(i+1), logs, 1)
	}
	for _, name := range []string{"rare", "metrics.rare"} {
		columns, err := h.Collect("elapsed.steps", "metrics.loss", name)
		require.NoError(t, err)
		require.Equal(t, [][]float64{{2, 4, 6}, {1, 3, 5}, {100, 300, 500}}, columns)
	}
	none, err := h.Collect()
	require.NoError(t, err)
	require.Empty(t, none)
	t.Log("D10: 0 errors for rows without the name, 3 of 6 rows")
}

// Ciclo counts before a step, so its rows with an evaluation start at 0; here at the first period.
func TestB16_trainAndTestMetricOfOneName(t *testing.T) {
	test := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
		return s, metric("accuracy", float64(n)), nil
	})))
	train := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
		return s, metric("accuracy", float64(1000+n)), nil
	}))

	evaluate := loop.On(loop.Every(loop.Steps(10)), loop.StepFunc(func(ctx context.Context, s, _ int) (int, loop.Logs, error) {
		inner, err := test.Run(ctx, s, numbers(3))
		if err != nil {
			return s, loop.Logs{}, err
		}
		last, err := inner.History.Last("accuracy")
		return s, metric("accuracy", last).Suffix("test"), err
	}))

	result, err := loop.New(train, evaluate).Run(t.Context(), 0, numbers(30))
	require.NoError(t, err)
	columns, err := result.History.Collect("steps", "accuracy", "accuracy_test")
	require.NoError(t, err)
	require.Equal(t, [][]float64{{10, 20, 30}, {1009, 1019, 1029}, {2, 2, 2}}, columns)
	t.Logf("B16: rows at steps %v", columns[0])
}

func TestHistory_Names(t *testing.T) {
	h := new(loop.History)
	require.Empty(t, h.Names())
	var logs loop.Logs
	logs.Loss("loss", 1)
	logs.Metric("accuracy", 0)
	logs.Metric("loss", 2)
	h.Commit(loop.Elapsed{Steps: 1}, logs, 1)
	require.Equal(t, []string{"accuracy", "loss"}, h.Names())
}

func TestHistory_elapsed(t *testing.T) {
	var h loop.History
	date := time.Date(2024, 2, 29, 12, 0, 0, 250e6, time.UTC)
	h.Commit(loop.Elapsed{Steps: 3, Samples: 96, Time: 1500 * time.Millisecond, Date: loop.Date(date.UnixNano())}, metric("m", 7), 32)
	columns, err := h.Collect("elapsed.steps", "elapsed.samples", "elapsed.batch", "elapsed.time", "elapsed.date", "m")
	require.NoError(t, err)
	require.Equal(t, [][]float64{{3}, {96}, {32}, {1.5}, {float64(date.UnixMilli()) / 1000}, {7}}, columns)
	h.Commit(loop.Elapsed{}, metric("steps", 8), 1)
	_, err = h.Last("steps")
	require.EqualError(t, err, `loop: history: ambiguous name: "steps"; use one of: elapsed.steps, metrics.steps`)
	_, dates, err := h.Series("elapsed.date")
	require.NoError(t, err)
	require.True(t, math.IsNaN(dates[1]), "a row without a date")
}

// Ciclo looks a short name up in each row for itself: this history would be the list 1, 2 there.
func TestHistory_oneNameInTwoCollectionsIsAmbiguous(t *testing.T) {
	var h loop.History
	var loss loop.Logs
	loss.Loss("loss", 1)
	h.Commit(at(1), loss, 1)
	h.Commit(at(2), metric("loss", 2), 1)
	_, _, err := h.Series("loss")
	require.EqualError(t, err, `loop: history: ambiguous name: "loss"; use one of: losses.loss, metrics.loss`)
	require.ErrorContains(t, err, "ambiguous name")
}

func TestHistory_fetchesOnceAndOnlyWhatIsRead(t *testing.T) {
	fetched := 0
	step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", late{&fetched, float64(n), nil})
		logs.Set(loop.Metrics, "other", late{&fetched, 0, nil})
		return s, logs, nil
	}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(1000))
	require.NoError(t, err)
	h := result.History
	for range h.Rows() {
	}
	_, err = h.Collect("steps")
	require.NoError(t, err)
	require.Zero(t, fetched, "the run, and going through the rows, reads nothing")
	for _, row := range []struct {
		name string
		read func() error
		want int
	}{
		{"last", func() error { _, err := h.Last("loss"); return err }, 1},
		{"last again", func() error { _, err := h.Last("loss"); return err }, 1},
		{"a row", func() error {
			for _, logs := range h.Rows() {
				_, err := logs.Float("loss")
				return err
			}
			return nil
		}, 2},
		{"all", func() error { _, _, err := h.Series("loss"); return err }, 1000},
		{"the mean of what is known", func() error { _, err := h.Mean("loss"); return err }, 1000},
		{"the other one", func() error { _, err := h.Collect("other", "loss"); return err }, 2000},
	} {
		require.NoError(t, row.read(), row.name)
		require.Equal(t, row.want, fetched, row.name)
	}
	t.Logf("fetches: 0 of 2000 in the run, 1 for each value read, 0 for the second time")
}

func TestHistory_errorOfAValue(t *testing.T) {
	lost := errors.New("device lost")
	var h loop.History
	for i := range int64(3) {
		var logs loop.Logs
		if i == 1 {
			logs.Set(loop.Losses, "loss", late{new(int), 0, lost})
		}
		logs.Metric("m", 1)
		h.Commit(at(i+1), logs, 1)
	}
	for name, read := range map[string]func() error{
		"series":  func() error { _, _, err := h.Series("loss"); return err },
		"collect": func() error { _, err := h.Collect("loss"); return err },
		"last":    func() error { _, err := h.Last("loss"); return err },
		"mean":    func() error { _, err := h.Mean("loss"); return err },
	} {
		err := read()
		require.ErrorIs(t, err, lost, name)
		require.EqualError(t, err, "loop: history: step 2: losses.loss: device lost", name)
	}
}

// A step may use its logs again: the history has the values, not the slice.
func TestHistory_aStepMayReuseItsLogs(t *testing.T) {
	var logs loop.Logs
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
		logs.Metric("n", float64(n))
		return s, logs, nil
	}))).Run(t.Context(), 0, numbers(3))
	require.NoError(t, err)
	_, values, err := result.History.Series("n")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2}, values)
}

func TestHistory_payloads(t *testing.T) {
	var h loop.History
	for i := range int64(3) {
		var logs loop.Logs
		logs.Output("prediction", []float64{float64(i)})
		h.Commit(at(i+1), logs, 1)
	}
	_, _, err := h.Series("prediction")
	require.EqualError(t, err, "loop: history: step 1: outputs.prediction: []float64 is not a number")
	var all []float64
	for _, logs := range h.Rows() {
		e, err := logs.Get("prediction")
		require.NoError(t, err)
		v, err := e.Any()
		require.NoError(t, err)
		all = append(all, v.([]float64)...)
	}
	require.Equal(t, []float64{0, 1, 2}, all)
}

func TestHistory_elapsedIsNoCollectionToLogIn(t *testing.T) {
	var h loop.History
	var logs loop.Logs
	logs.Set("elapsed", "steps", 99)
	logs.Set("x", "y", 1)
	h.Commit(at(1), logs, 1)
	v, err := h.Last("elapsed.steps")
	require.NoError(t, err)
	require.Equal(t, 1.0, v)
}

func TestHistory_anEntryThatComesTwiceInARow(t *testing.T) {
	var h loop.History
	twice := func(a, b loop.Value) loop.Logs {
		var logs loop.Logs
		logs.SetAll([]loop.Entry{{Collection: "x", Name: "y", Value: a}, {Collection: "x", Name: "y", Value: b}})
		return logs
	}
	known := func(v float64) loop.Value { return late{new(int), v, nil} }
	fetched := 0
	h.Commit(at(1), twice(known(1), known(2)), 1)
	h.Commit(at(2), twice(late{&fetched, 3, nil}, known(4)), 1)
	h.Commit(at(3), twice(known(5), late{&fetched, 6, nil}), 1)
	_, values, err := h.Series("y")
	require.NoError(t, err)
	require.Equal(t, []float64{2, 4, 6}, values, "the last one stays")
}

func TestHistory_since(t *testing.T) {
	fetched := 0
	h := &loop.History{}
	for i := range int64(6) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", late{&fetched, float64(i), nil})
		if i%2 == 0 {
			logs.Metric("even", float64(i))
		}
		h.Commit(loop.Elapsed{Steps: i + 1, Samples: 10 * (i + 1)}, logs, 10)
	}
	part := h.Since(3)
	require.Equal(t, 3, part.Len())
	require.Zero(t, fetched)
	at, values, err := part.Series("loss")
	require.NoError(t, err)
	require.Equal(t, []float64{3, 4, 5}, values)
	require.EqualValues(t, 4, at[0].Steps)
	_, values, err = part.Series("even")
	require.NoError(t, err)
	require.Equal(t, []float64{4}, values)
	_, _, err = h.Series("loss")
	require.NoError(t, err)
	require.Equal(t, 6, fetched, "each once, for both")
	require.Zero(t, h.Since(6).Len())
	require.Equal(t, 6, h.Since(0).Len())
}
