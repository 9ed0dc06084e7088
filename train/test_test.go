package train_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

func TestTest_oneRowABatch(t *testing.T) {
	var trace tracer
	test := testOn(4, step, trace.testHooks())
	test.Reset, test.KeepState = trace.reset, true
	result, logs, err := test.Run(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 4, result.History.Len())
	require.Equal(t, 20, result.State)
	_, sums, err := result.History.Series("sum")
	require.NoError(t, err)
	require.Equal(t, []float64{11, 13, 16, 20}, sums)
	mean, err := logs.Float("sum_test")
	require.NoError(t, err)
	require.Equal(t, 15., mean)
	require.Equal(t, tracer{"reset", "test begin@0", "test after reset@0"}, trace[:3])
	require.Equal(t, tracer{"test batch begin@4", "after test step@4", "test batch end@4", "test end@4", "reset"}, trace[len(trace)-5:])
}

func TestTest_lengthAndAggregation(t *testing.T) {
	test := testOn(100, step)
	test.Options, test.Aggregate = []loop.Option{loop.Until(loop.Steps(3))}, map[loop.Collection]loop.Aggregation{loop.Metrics: {}}
	result, logs, err := test.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, loop.UntilReached, result.Reason)
	last, err := logs.Float("sum_test")
	require.NoError(t, err)
	require.Equal(t, 6., last)
	shorter, _, err := test.Run(t.Context(), 0, loop.Until(loop.Steps(2)))
	require.NoError(t, err)
	require.EqualValues(t, 2, shorter.Elapsed.Steps, "an option of the run replaces one of the evaluation")
}

// The data of a test is opened for each test and not before.
func TestTest_dataIsMadeAnew(t *testing.T) {
	made := 0
	test := train.Test("test", loop.Stepper[int, int](step), loop.From(func(int64) iter.Seq2[int, error] {
		made++
		return iter.Seq2[int, error](upTo(made))
	}))
	test.Aggregate = map[loop.Collection]loop.Aggregation{loop.Metrics: {Name: "count", Of: func(v, _ []float64) float64 { return float64(len(v)) }}}
	l := toy{Step: step, Epoch: loop.Steps(2), Tests: []check{test}}
	_, err := l.Plan()
	require.NoError(t, err)
	require.Zero(t, made)
	result, err := l.Run(t.Context(), 0, upTo(6))
	require.NoError(t, err)
	_, batches, err := result.History.Series("sum_test")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3}, batches)
}

// An iterator that is used up gives an empty second test, which would leave its numbers out in silence.
func TestTest_withoutABatch(t *testing.T) {
	left := 3
	once := func(yield func(int, error) bool) {
		for left > 0 {
			left--
			if !yield(left, nil) {
				return
			}
		}
	}
	test := train.Test("test", loop.Stepper[int, int](step), loop.Data[int](once))
	_, err := toy{Step: step, Epoch: loop.Steps(2), Tests: []check{test}}.Run(t.Context(), 0, upTo(6))
	require.EqualError(t, err, "loop: step 4: every 2 steps: evaluation test: no batch to evaluate on: the data is empty, or an iterator that an earlier evaluation has read to its end")
	_, logs, err := test.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: evaluation test: no batch to evaluate on: the data is empty, or an iterator that an earlier evaluation has read to its end")
	require.Zero(t, logs.Len())
}

func TestTest_severalByName(t *testing.T) {
	named := func(name string, n int) check { return loop.Evaluate[int, int](name, step, upTo(n)) }
	l := toy{Step: step, Epoch: loop.Steps(2), Tests: []check{
		testOn(1, step), named("val", 2), named("held", 2),
	}, Tasks: []loop.Task[int, int]{named("rare", 1).On(loop.Every(loop.Steps(4)))}}
	l.Tests[2].Prefix = true
	result, err := l.Run(t.Context(), 0, upTo(4))
	require.NoError(t, err)
	for name, want := range map[string][]float64{"sum_test": {4, 11}, "sum_val": {5, 12}, "held_sum": {5, 12}, "sum_rare": {11}} {
		_, got, err := result.History.Series(name)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
}

// mean is a state that changes in place: it sums up what it sees until it is reset.
type mean struct{ sum, n float64 }

func (m *mean) step(_ context.Context, _ *mean, x float64) (*mean, loop.Logs, error) {
	m.sum, m.n = m.sum+x, m.n+1
	var logs loop.Logs
	logs.Stateful("avg_loss", m.sum/m.n)
	return m, logs, nil
}

func (m *mean) reset(context.Context, *mean) (*mean, error) {
	*m = mean{}
	return m, nil
}

// Averages stand under names of their own, those of the test with its suffix; and no epoch has what the one before it,
// or a test, has summed up.
func TestB09_averagesWithSuffix(t *testing.T) {
	m := &mean{}
	values := func(x ...float64) loop.Data[float64] {
		return func(yield func(float64, error) bool) {
			for _, v := range x {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
	l := train.Loop[*mean, float64]{
		Step: loop.StepFunc[*mean, float64](m.step), Reset: m.reset, Epoch: loop.Steps(2), TestAtStart: true,
		Tests: []loop.Evaluation[*mean, float64]{loop.Evaluate[*mean, float64]("test", loop.StepFunc[*mean, float64](m.step), values(100, 200))},
	}
	l.Tests[0].Reset = m.reset
	result, err := l.Run(t.Context(), m, values(1, 3, 5, 9))
	require.NoError(t, err)
	_, averages, err := result.History.Series("avg_loss")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 5, 7}, averages)
	_, tests, err := result.History.Series("avg_loss_test")
	require.NoError(t, err)
	require.Equal(t, []float64{150, 150, 150}, tests)
	t.Logf("B09: avg_loss %v, avg_loss_test %v", averages, tests)
}
