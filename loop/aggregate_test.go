package loop_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// floats reads all entries of logs, with custom aggregations.
var (
	aggregateSum        = ownAggregation("sum", func(v, _ []float64) float64 { return weightedSum(v, nil) })
	aggregateMean       = ownAggregation("mean", func(v, _ []float64) float64 { return weightedSum(v, nil) / float64(len(v)) })
	aggregateSampleMean = ownAggregation("sample mean", func(v, n []float64) float64 { return weightedSum(v, n) / weightedSum(n, nil) })
	aggregateMin        = ownAggregation("min", func(v, _ []float64) float64 { return slices.Min(v) })
	aggregateMax        = ownAggregation("max", func(v, _ []float64) float64 { return slices.Max(v) })
	aggregateFirst      = ownAggregation("first", func(v, _ []float64) float64 { return v[0] })
)

func ownAggregation(name string, of func(values, samples []float64) float64) loop.Aggregation {
	return loop.Aggregation{Name: name, Of: of}
}

func weightedSum(values, weights []float64) (sum float64) {
	for i, v := range values {
		if weights != nil {
			v *= weights[i]
		}
		sum += v
	}
	return sum
}

func floats(t require.TestingT, logs loop.Logs) map[string]float64 {
	all := map[string]float64{}
	for e := range logs.All() {
		v, err := e.Value.Float()
		require.NoError(t, err, e.Path())
		all[e.Path()] = v
	}
	return all
}

// A, B and C are in one row each, D in all three; the batches have 4, 1 and 1 examples.
func TestB26_B28_aggregations(t *testing.T) {
	history := func(c loop.Collection) *loop.History {
		h := &loop.History{}
		for i, row := range []map[string]float64{{"A": 1, "D": 1}, {"B": 1, "D": -1}, {"C": 1, "D": 0}} {
			var logs loop.Logs
			for _, name := range []string{"A", "B", "C", "D"} {
				if v, ok := row[name]; ok {
					logs.Set(c, name, v)
				}
			}
			h.Commit(at(int64(i)), logs, []int64{4, 1, 1}[i])
		}
		return h
	}
	others := loop.Aggregation{Name: "number of values", Of: func(v, _ []float64) float64 { return float64(len(v)) }}
	for _, row := range []struct {
		name       string
		collection loop.Collection
		as         map[loop.Collection]loop.Aggregation
		abc, d     float64
	}{
		{"B26: sum", loop.Metrics, map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateSum}, 1, 0},
		{"last", loop.Metrics, map[loop.Collection]loop.Aggregation{loop.Metrics: {}}, 1, 0},
		{"first", loop.Metrics, map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateFirst}, 1, 1},
		{"mean", loop.Metrics, map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateMean}, 1, 0},
		{"sample mean", loop.Stateful, map[loop.Collection]loop.Aggregation{loop.Stateful: aggregateSampleMean}, 1, 0.5},
		{"max", loop.Metrics, map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateMax}, 1, 1},
		{"a function", loop.Outputs, map[loop.Collection]loop.Aggregation{loop.Outputs: others}, 1, 3},
		{"B28: stateful is summed", loop.Stateful, map[loop.Collection]loop.Aggregation{loop.Stateful: aggregateSum, loop.Metrics: aggregateMin}, 1, 0},
		{"B28: of metrics it is the least", loop.Metrics, map[loop.Collection]loop.Aggregation{loop.Stateful: aggregateSum, loop.Metrics: aggregateMin}, 1, -1},
		{"unsaid: metrics", loop.Metrics, nil, 1, 0.5},
		{"unsaid: losses", loop.Losses, map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateSum}, 1, 0.5},
		{"unsaid: stateful", loop.Stateful, map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateSum}, 1, 0},
		{"unsaid: one's own", "mine", nil, 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			prefix := string(row.collection) + "."
			want := map[string]float64{prefix + "A": row.abc, prefix + "B": row.abc, prefix + "C": row.abc, prefix + "D": row.d}
			require.Equal(t, want, floats(t, history(row.collection).Aggregate(row.as)), "elapsed is not among them")
		})
	}
}

func TestAggregate_ofNothingIsNothing(t *testing.T) {
	require.Zero(t, (&loop.History{}).Aggregate(nil).Len())
	h := &loop.History{}
	h.Commit(at(1), loop.Logs{}, 1)
	require.Zero(t, h.Aggregate(map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateSum}).Len())
}

// The sample mean of batch means is the mean over all examples, for any division into batches.
func TestSampleMean_isTheMeanOverAllExamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batches := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-100, 100), 0, 6), 1, 20).Draw(t, "batches")
		h, sum, n, logged := &loop.History{}, 0.0, 0, false
		for i, b := range batches {
			var logs loop.Logs
			if rapid.Bool().Draw(t, "logged") {
				mean := 0.0
				for _, x := range b {
					mean += x / float64(len(b))
					sum, n = sum+x, n+1
				}
				logs.Loss("loss", mean)
				logged = true
			}
			h.Commit(at(int64(i+1)), logs, int64(len(b)))
		}
		got := floats(t, h.Aggregate(nil))
		switch {
		case !logged:
			require.Empty(t, got)
		case n == 0:
			require.Equal(t, 0.0, got["losses.loss"])
		default:
			require.InDelta(t, sum/float64(n), got["losses.loss"], 1e-9)
		}
	})
}

// Logs of a task at the end of the inner run have no examples, because the row has no batch.
func TestSampleMean_ofRowsWithoutExamplesIsTheMean(t *testing.T) {
	compute := func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, metric("accuracy", 0.75), nil }
	result, err := loop.New(loop.On(loop.AtEnd, loop.StepFunc(compute))).Run(t.Context(), 0, numbers(3))
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"metrics.accuracy": 0.75}, floats(t, result.History.Aggregate(nil)))

	h := &loop.History{}
	h.Commit(at(1), metric("m", 1), 0)
	h.Commit(at(1), metric("m", 2), 0)
	require.Equal(t, 1.5, floats(t, h.Aggregate(nil))["metrics.m"])
}

func TestAggregate_notANumber(t *testing.T) {
	h := &loop.History{}
	for i, v := range []float64{2, math.NaN(), 1} {
		h.Commit(at(int64(i)), metric("m", v), 1)
	}
	for _, a := range []loop.Aggregation{aggregateSum, aggregateMean, aggregateSampleMean, aggregateMin, aggregateMax} {
		require.True(t, math.IsNaN(floats(t, h.Aggregate(map[loop.Collection]loop.Aggregation{loop.Metrics: a}))["metrics.m"]), a.Name)
	}
	require.Equal(t, 1.0, floats(t, h.Aggregate(map[loop.Collection]loop.Aggregation{loop.Metrics: {}}))["metrics.m"])
}

func TestAggregate_readsEachValueOnceAndNoneUnasked(t *testing.T) {
	for _, row := range []struct {
		name  string
		by    loop.Aggregation
		reads int
	}{
		{"sum", aggregateSum, 5}, {"sample mean", aggregateSampleMean, 5}, {"min", aggregateMin, 5}, {"last", loop.Aggregation{}, 1}, {"first", aggregateFirst, 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, reads := &loop.History{}, 0
			for i := range 5 {
				var logs loop.Logs
				logs.Set(loop.Metrics, "m", late{&reads, float64(i), nil})
				logs.Set(loop.Metrics, "unasked", late{&reads, 1, nil})
				h.Commit(at(int64(i)), logs, 1)
			}
			logs := h.Aggregate(map[loop.Collection]loop.Aggregation{loop.Metrics: row.by}).Suffix("test")
			require.Equal(t, 0, reads)
			for range 3 {
				_, err := logs.Float("m_test")
				require.NoError(t, err)
			}
			require.Equal(t, row.reads, reads)
		})
	}
}

func TestAggregate_payload(t *testing.T) {
	h := &loop.History{}
	for i := range 3 {
		var logs loop.Logs
		logs.Output("image", []int{i})
		h.Commit(at(int64(i)), logs, 1)
	}
	e, err := h.Aggregate(nil).Get("image")
	require.NoError(t, err)
	image, err := e.Any()
	require.NoError(t, err)
	require.Equal(t, []int{2}, image)

	_, err = h.Aggregate(map[loop.Collection]loop.Aggregation{loop.Outputs: aggregateSum}).Float("image")
	require.EqualError(t, err, "loop: outputs.image: sum: history: step 0: outputs.image: []int is not a number")
}

// A second reader of a failed aggregation gets the error too, not a zero.
func TestAggregate_failsForEachReader(t *testing.T) {
	lost := errors.New("device lost")
	h := &loop.History{}
	var logs loop.Logs
	logs.Set(loop.Metrics, "m", late{new(int), 0, lost})
	h.Commit(at(1), logs, 1)
	for range 2 {
		_, err := h.Aggregate(nil).Float("m")
		require.ErrorIs(t, err, lost)
	}

	h = &loop.History{}
	h.Commit(at(1), metric("m", 1), 1)
	broken := h.Aggregate(map[loop.Collection]loop.Aggregation{loop.Metrics: {Name: "median", Of: func([]float64, []float64) float64 { panic("boom") }}})
	require.PanicsWithValue(t, "boom", func() { _, _ = broken.Float("m") })
	_, err := broken.Float("m")
	require.EqualError(t, err, "loop: metrics.m: median: it did not return")
}

// A custom function receives the values that exist, oldest first, each with the examples of its batch.
func TestAggregation_arguments(t *testing.T) {
	h := &loop.History{}
	h.Commit(at(1), metric("m", 3), 2)
	h.Commit(at(2), metric("other", 9), 7)
	h.Commit(at(3), metric("m", 1), 5)
	var values, samples []float64
	spy := loop.Aggregation{Name: "spy", Of: func(v, s []float64) float64 {
		if len(v) == 2 {
			values, samples = slices.Clone(v), slices.Clone(s)
		}
		return 0
	}}
	floats(t, h.Aggregate(map[loop.Collection]loop.Aggregation{loop.Metrics: spy}))
	require.Equal(t, []float64{3, 1}, values)
	require.Equal(t, []float64{2, 5}, samples)
}
