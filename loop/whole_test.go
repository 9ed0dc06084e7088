package loop_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// halves is a source of 5 examples in batches of 2 that drops the last one, as a set's batches do in a training.
type halves struct{}

type group []int

func (g group) Samples() int { return len(g) }

func (halves) From(position int64) iter.Seq2[group, error] { return groups(position, 2) }

func (halves) WholeFrom(position int64) iter.Seq2[group, error] { return groups(position, 3) }

func groups(position, end int64) iter.Seq2[group, error] {
	return func(yield func(group, error) bool) {
		for ; position < end; position++ {
			if !yield([]group{{1, 2}, {3, 4}, {5}}[position], nil) {
				return
			}
		}
	}
}

// mean is a step that logs the mean of its examples.
type mean struct{ measures bool }

func (m mean) Measures() bool { return m.measures }

func (mean) Step(_ context.Context, seen int, batch group) (int, loop.Logs, error) {
	var logs loop.Logs
	sum := 0
	for _, x := range batch {
		sum += x
	}
	logs.Metric("mean", float64(sum)/float64(len(batch)))
	return seen + len(batch), logs, nil
}

// An evaluation counts the examples of the smaller last batch, and weights them: a newcomer's test accuracy was that of
// 256 of 360 examples.
func TestEvaluate_countsAllExamples(t *testing.T) {
	e := loop.Evaluate("test", mean{true}, halves{})
	result, logs, err := e.Run(t.Context(), 0)
	require.NoError(t, err)
	require.EqualValues(t, 5, result.Elapsed.Samples)
	value, err := logs.Float("mean_test")
	require.NoError(t, err)
	require.Equal(t, 3.0, value)

	training := loop.New(loop.On(loop.EachStep, mean{}), e.On(loop.Every(loop.Steps(2))))
	trained, err := training.Run(t.Context(), 0, halves{})
	require.NoError(t, err)
	require.EqualValues(t, 4, trained.Elapsed.Samples, "a training drops the remainder")
	value, err = trained.History.Last("mean_test")
	require.NoError(t, err)
	require.Equal(t, 3.0, value)
}

// An evaluation with a step that trains would train on its data.
func TestEvaluate_refusesAStepThatTrains(t *testing.T) {
	e := loop.Evaluate("test", mean{false}, halves{})
	_, _, err := e.Run(t.Context(), 0)
	require.ErrorContains(t, err, "evaluation test: its step trains the state, on the data of the evaluation: give it a test step, or set KeepState")
	e.KeepState = true
	result, _, err := e.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 5, result.State)
}
