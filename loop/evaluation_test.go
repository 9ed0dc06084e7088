package loop_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// dataOf returns n numbers for each evaluation, and counts the calls.
func dataOf(n int, asked *int) loop.Source[int] {
	return loop.From(func(int64) iter.Seq2[int, error] {
		*asked++
		return numbers(n).From(0)
	})
}

// counting is a test step that logs how many batches the state has counted.
func counting(c loop.Collection) loop.Loop[int, int] {
	return loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(c, "count", s+1)
		return s + 1, logs, nil
	})))
}

// stepsOf are the steps of the rows that have an entry.
func stepsOf(t *testing.T, h *loop.History, name string) (steps []int64) {
	at, _, err := h.Series(name)
	require.NoError(t, err)
	for _, e := range at {
		steps = append(steps, e.Steps)
	}
	return steps
}

func TestB03_theLastValueUnderTheSuffixedName(t *testing.T) {
	for _, row := range []struct {
		name       string
		collection loop.Collection
		as         map[loop.Collection]loop.Aggregation
		want       float64
	}{
		{"stateful, unsaid", loop.Stateful, nil, 4},
		{"metrics, said", loop.Metrics, map[loop.Collection]loop.Aggregation{loop.Metrics: {}}, 4},
		{"metrics, unsaid: other than in Ciclo, the mean of all examples", loop.Metrics, nil, 2.5},
	} {
		t.Run(row.name, func(t *testing.T) {
			test := loop.Evaluation[int, int]{Name: "test", Loop: counting(row.collection), Data: dataOf(4, new(int)), Aggregate: row.as}
			result, err := loop.New(test.On(loop.EachStep)).Run(t.Context(), 0, numbers(1), loop.Until(loop.Steps(1)))
			require.NoError(t, err)
			require.Equal(t, 1, result.History.Len())
			for _, logs := range result.History.Rows() {
				require.Equal(t, map[string]float64{string(row.collection) + ".count_test": row.want}, floats(t, logs))
			}
			require.Equal(t, 0, result.State, "the state of an evaluation is dropped")
		})
	}
}

func TestB06_aNestedLoopDoesNotDisturbTheOuterOne(t *testing.T) {
	both := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", 1/float64(s+1))
		logs.Metric("accuracy", float64(s))
		return s + 1, logs, nil
	}
	reset := func(_ context.Context, _, _ int) (int, loop.Logs, error) { return 100, loop.Logs{}, nil }
	validation := loop.Evaluation[int, int]{Name: "valid", Data: ten, Options: []loop.Option{loop.Until(loop.Steps(1))},
		Loop: loop.New(loop.On(loop.AtStart, loop.StepFunc(reset)), loop.On(loop.EachStep, loop.StepFunc(both)))}
	var best []float64
	monitor := loop.WatchEntry("accuracy_valid", func(_ context.Context, r loop.Report) error {
		v, err := r.Logs.Float("accuracy_valid")
		best = append(best, v)
		return err
	})
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(both)), validation.On(loop.Every(loop.Steps(2)))).
		Run(t.Context(), 0, numbers(100), loop.Until(loop.Steps(12)), monitor)
	require.NoError(t, err)
	require.Equal(t, 12, result.History.Len())
	rows, err := result.History.Collect("loss", "accuracy")
	require.NoError(t, err)
	require.Len(t, rows[0], 12, "loss and accuracy are in all rows")
	require.Equal(t, []int64{2, 4, 6, 8, 10, 12}, stepsOf(t, result.History, "accuracy_valid"))
	require.Equal(t, []float64{100, 100, 100, 100, 100, 100}, best, "each began with a reset")
	require.Equal(t, 12, result.State, "the reset stayed within")
}

func TestB16_theSameNameInsideAndOutside(t *testing.T) {
	test := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(add))), Data: dataOf(3, new(int))}
	for _, row := range []struct {
		name       string
		when       loop.Schedule
		steps      []int64
		both, sums []float64 // the steps with both entries, and the values of the evaluation
	}{
		{"ten steps are done at 10, not at 0 as in Ciclo", loop.Every(loop.Steps(10)), []int64{10, 20}, []float64{10, 20},
			[]float64{45 + 4.0/3, 190 + 4.0/3}},
		{"at the start there is no training row yet", loop.Every(loop.Steps(10)).AndAtStart(), []int64{0, 10, 20}, []float64{10, 20},
			[]float64{4.0 / 3, 45 + 4.0/3, 190 + 4.0/3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), test.On(row.when)).Run(t.Context(), 0, numbers(25))
			require.NoError(t, err)
			require.Equal(t, row.steps, stepsOf(t, result.History, "sum_test"))
			require.Len(t, stepsOf(t, result.History, "sum"), 25)
			lists, err := result.History.Collect("steps", "sum", "sum_test")
			require.NoError(t, err)
			require.Equal(t, row.both, lists[0])
			_, sums, err := result.History.Series("sum_test")
			require.NoError(t, err)
			require.InDeltaSlice(t, row.sums, sums, 1e-12)
		})
	}
}

// Entries that some rows of the inner run lack are aggregated over the other rows.
func TestInnerLoop_rowsThatLackAnEntry(t *testing.T) {
	odd := loop.On(loop.Every(loop.Steps(2)), loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) { return s, metric("odd", float64(n)), nil }))
	test := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), odd), Data: ten,
		Aggregate: map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateSum}}
	_, logs, err := test.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"metrics.sum_test": 165, "metrics.odd_test": 1 + 3 + 5 + 7 + 9}, floats(t, logs))
}

func TestInnerLoop_nothingLogged(t *testing.T) {
	quiet := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s + 1, loop.Logs{}, nil })))
	for _, test := range []loop.Evaluation[int, int]{
		{Name: "quiet", Loop: quiet, Data: ten},
		{Name: "no tasks", Data: ten},
	} {
		_, logs, err := test.Run(t.Context(), 0)
		require.NoError(t, err, test.Name)
		require.Zero(t, logs.Len(), test.Name)
	}
}

// S66: an evaluation passes its state from step to step. Without KeepState the training continues with its own.
func TestInnerLoop_keepState(t *testing.T) {
	for _, keep := range []bool{false, true} {
		test := loop.Evaluation[int, int]{Name: "test", Loop: counting(loop.Metrics), Data: dataOf(3, new(int)), KeepState: keep}
		result, err := loop.New(test.On(loop.EachStep)).Run(t.Context(), 0, numbers(5))
		require.NoError(t, err)
		require.Equal(t, map[bool]int{false: 0, true: 15}[keep], result.State)
	}
}

func TestEvaluations_eachWithItsOwn(t *testing.T) {
	var train, test, final int
	sum := map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateSum}
	l := loop.New(
		loop.On(loop.EachStep, loop.StepFunc(add)),
		loop.Evaluation[int, int]{Name: "train", Loop: counting(loop.Metrics), Data: dataOf(5, &train), Options: []loop.Option{loop.Until(loop.Steps(2))}, Aggregate: sum}.
			On(loop.Every(loop.Steps(2))),
		loop.Evaluation[int, int]{Name: "test", Loop: counting(loop.Metrics), Data: dataOf(3, &test), Aggregate: map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateMax}}.
			On(loop.Every(loop.Steps(3)).AndAtStart()),
		loop.Evaluation[int, int]{Name: "final", Loop: counting(loop.Metrics), Data: dataOf(1, &final)}.On(loop.AtEnd))
	for range 2 { // a loop is a value: it runs any number of times
		train, test, final = 0, 0, 0
		result, err := l.Run(t.Context(), 1000, numbers(7))
		require.NoError(t, err)
		require.Equal(t, []int{3, 3, 1}, []int{train, test, final}, "data is made for each evaluation")
		for name, want := range map[string][]int64{"count_train": {2, 4, 6}, "count_test": {0, 3, 6}, "count_final": {7}} {
			require.Equal(t, want, stepsOf(t, result.History, name), name)
		}
		_, trained, err := result.History.Series("count_train")
		require.NoError(t, err)
		require.Equal(t, []float64{2*1001 + 3, 2*1006 + 3, 2*1015 + 3}, trained, "the sum of two counts")
		_, tested, err := result.History.Series("count_test")
		require.NoError(t, err)
		require.Equal(t, []float64{1003, 1006, 1018}, tested, "the largest of three")
	}
}

func TestEvaluations_twoLevelsDeep(t *testing.T) {
	third := loop.Evaluation[int, int]{Name: "c", Loop: counting(loop.Metrics), Data: dataOf(2, new(int)), Aggregate: map[loop.Collection]loop.Aggregation{loop.Metrics: {}}}
	second := loop.Evaluation[int, int]{Name: "b", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), third.On(loop.Every(loop.Steps(2)))), Data: dataOf(4, new(int)),
		Aggregate: map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateSum}}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), second.On(loop.AtEnd)).Run(t.Context(), 0, numbers(3))
	require.NoError(t, err)
	require.Equal(t, 3, result.State)
	last, err := result.History.Last("count_c_b")
	require.NoError(t, err)
	require.Equal(t, float64(4+2+9+2), last, "after 2 steps of b the state is 4, after 4 it is 9")
	sums, err := result.History.Last("sum_b")
	require.NoError(t, err)
	require.Equal(t, float64(3+4+6+9), sums)
}

func TestEvaluation_fetchesNothingThatNobodyReads(t *testing.T) {
	reads := 0
	step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", late{&reads, 1, nil})
		return s, logs, nil
	}
	test := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(step))), Data: ten}
	seen := 0
	result, err := loop.New(test.On(loop.Every(loop.Steps(2)))).Run(t.Context(), 0, numbers(10), loop.Thin(5),
		loop.WatchEntry("loss_test", func(context.Context, loop.Report) error { seen++; return nil }))
	require.NoError(t, err)
	require.Equal(t, 5, seen)
	require.Equal(t, 0, reads, "50 values were logged in 5 evaluations")
	for range 2 {
		_, err = result.History.Last("loss_test")
		require.NoError(t, err)
		require.Equal(t, 10, reads, "the values of one evaluation")
	}
	for range 2 {
		_, _, err = result.History.Series("loss_test")
		require.NoError(t, err)
		require.Equal(t, 50, reads)
	}
}

func TestEvaluation_optionsAreThoseOfTheInnerRun(t *testing.T) {
	var inner []int64
	watch := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
		inner = append(inner, r.Elapsed.Steps)
		if r.Elapsed.Steps == 2 {
			return loop.ErrStop
		}
		return nil
	})
	test := loop.Evaluation[int, int]{Name: "test", Loop: counting(loop.Metrics), Data: ten, Options: []loop.Option{watch, loop.Keep(loop.Every(loop.Steps(2)))}}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), test.On(loop.Every(loop.Steps(2)))).Run(t.Context(), 0, numbers(4))
	require.NoError(t, err)
	require.Equal(t, loop.DataEnded, result.Reason, "a wish to stop within ends the evaluation alone")
	require.Equal(t, []int64{1, 2, 1, 2}, inner)
	_, counts, err := result.History.Series("count_test")
	require.NoError(t, err)
	require.Equal(t, []float64{1 + 2, 6 + 2}, counts, "of two rows the second was kept")
}

// A run that continues another one has the rows of a run without a break: one evaluation at step 0, and none where it
// begins.
func TestEvaluation_notAtTheStartOfAResumedRun(t *testing.T) {
	for _, start := range []int64{0, 2, 3} {
		test := loop.Evaluation[int, int]{Name: "test", Loop: counting(loop.Metrics), Data: ten}
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), test.On(loop.Every(loop.Steps(2)).AndAtStart()))
		called := 0
		watch := loop.WatchEntry("count_test", func(context.Context, loop.Report) error { called++; return nil })
		first, err := l.Run(t.Context(), 0, ten, loop.Until(loop.Steps(start)), watch)
		require.NoError(t, err)
		result, err := l.Run(t.Context(), first.State, ten, loop.Until(loop.Steps(6)), watch, loop.Continue(first.Elapsed, first.History))
		require.NoError(t, err)
		require.Equal(t, []int64{0, 2, 4, 6}, stepsOf(t, result.History, "count_test"))
		require.Equal(t, 4, called)
	}
}

// A run that ended after its start, before its first step, has evaluated the state already: with a second row,
// patiences would run out one evaluation earlier.
func TestEvaluation_notAgainAtTheStart(t *testing.T) {
	test := loop.Evaluation[int, int]{Name: "test", Loop: counting(loop.Metrics), Data: ten}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), test.On(loop.Every(loop.Steps(2)).AndAtStart()))
	pause := loop.Watch(loop.AtStart, func(context.Context, loop.Report) error { return loop.ErrPause })
	first, err := l.Run(t.Context(), 0, ten, loop.Until(loop.Steps(6)), pause)
	require.NoError(t, err)
	require.Equal(t, []int64{0}, stepsOf(t, first.History, "count_test"))
	result, err := l.Run(t.Context(), first.State, ten, loop.Until(loop.Steps(6)), loop.Continue(first.Elapsed, first.History))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 2, 4, 6}, stepsOf(t, result.History, "count_test"))
}
