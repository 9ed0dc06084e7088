package train_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

func TestTest_oneRowABatch(t *testing.T) {
	var trace tracer
	test := check{Step: step, Data: testOn(4), Reset: trace.reset,
		Hooks: []train.TestHooks[int, int]{trace.testHooks()},
		Tasks: []loop.Task[int, int]{loop.OnTurn(loop.Every(loop.Steps(4)), trace.hook("task"))}}
	result, err := test.Run(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 4, result.History.Len())
	require.Equal(t, 20, result.State)
	_, sums, err := result.History.Series("sum")
	require.NoError(t, err)
	require.Equal(t, []float64{11, 13, 16, 20}, sums)
	mean, err := result.Logs.Float("sum")
	require.NoError(t, err)
	require.Equal(t, 15., mean)
	require.Equal(t, tracer{"test begin@0", "reset", "test after reset@0"}, trace[:3])
	require.Equal(t, tracer{"test batch begin@4", "after test step@4", "test batch end@4", "task@4", "test end@4"}, trace[len(trace)-5:])
}

func TestTest_lengthAndAggregation(t *testing.T) {
	test := check{Step: step, Data: testOn(100), Length: loop.Steps(3), Aggregate: loop.Aggregations{loop.Metrics: loop.Last}}
	result, err := test.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, loop.UntilReached, result.Reason)
	last, err := result.Logs.Float("sum")
	require.NoError(t, err)
	require.Equal(t, 6., last)
	shorter, err := test.Run(t.Context(), 0, loop.Until(loop.Steps(2)))
	require.NoError(t, err)
	require.Equal(t, 3, shorter.State, "an option of the run goes before Length")
}

// Data is called for each test and not before.
func TestTest_dataIsMadeAnew(t *testing.T) {
	made := 0
	test := check{Step: step, Data: func(ctx context.Context) (loop.Data[int], error) {
		made++
		return testOn(made)(ctx)
	}, Aggregate: loop.Aggregations{loop.Metrics: loop.AggregateBy("count", func(v, _ []float64) float64 { return float64(len(v)) })}}
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
	test := check{Step: step, Data: func(context.Context) (loop.Data[int], error) { return once, nil }}
	_, err := toy{Step: step, Epoch: loop.Steps(2), Tests: []check{test}}.Run(t.Context(), 0, upTo(6))
	require.EqualError(t, err, "loop: step 4: every 2 steps: evaluation test: step 1: data: no batch to test on: Data is called for each test, and must begin anew each time")
	result, err := test.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: step 1: data: no batch to test on: Data is called for each test, and must begin anew each time")
	require.Zero(t, result.Logs.Len())
}

func TestTest_severalByName(t *testing.T) {
	l := toy{Step: step, Epoch: loop.Steps(2), Tests: []check{
		{Step: step, Data: testOn(1)},
		{Name: "val", Step: step, Data: testOn(2)},
		{Name: "held", Prefix: true, Step: step, Data: testOn(2)},
	}, Tasks: []loop.Task[int, int]{check{Name: "rare", Step: step, Data: testOn(1)}.On(loop.Every(loop.Steps(4)))}}
	result, err := l.Run(t.Context(), 0, upTo(4))
	require.NoError(t, err)
	for name, want := range map[string][]float64{"sum_test": {4, 11}, "sum_val": {5, 12}, "held_sum": {5, 12}, "sum_rare": {11}} {
		_, got, err := result.History.Series(name)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
}

func TestTest_refusesBadSettings(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		name string
		test check
		err  string
	}{
		{"no step", check{Name: "val", Data: testOn(1)}, "train: val: no test step: set Step, or use TestOf with a state that has a method TestStep"},
		{"no data", check{Step: step}, "no data given"},
		{"data nil", check{Step: step, Data: func(context.Context) (loop.Data[int], error) { return nil, nil }}, "no data given"},
		{"data fails", check{Step: step, Data: func(context.Context) (loop.Data[int], error) { return nil, boom }}, "train: data: boom"},
		{"length", check{Step: step, Data: testOn(1), Length: loop.Steps(0)}, "length: period must be positive, got 0 steps"},
		{"aggregation", check{Step: step, Data: testOn(1), Aggregate: loop.Aggregations{loop.Losses: {}}}, "aggregation of losses: no function given"},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := row.test.Run(t.Context(), 5)
			require.ErrorContains(t, err, row.err)
			require.Equal(t, loop.Failed, result.Reason)
			require.Equal(t, 5, result.State)
			outer := loop.New(loop.On(loop.EachStep, step), row.test.On(loop.Every(loop.Steps(1))))
			result.Result, err = outer.Run(t.Context(), 0, upTo(1))
			require.Error(t, err)
			_, planErr := outer.Plan()
			if strings.HasPrefix(row.name, "data") {
				require.NoError(t, planErr, "data is not called before")
			} else {
				require.EqualError(t, err, planErr.Error(), "settings are looked at before the run")
				require.Zero(t, result.State)
			}
		})
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
		Tests: []train.Test[*mean, float64]{{Step: loop.StepFunc[*mean, float64](m.step),
			Data: func(context.Context) (loop.Data[float64], error) { return values(100, 200), nil }}},
	}
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
