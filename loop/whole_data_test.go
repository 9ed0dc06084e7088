package loop_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// Batches that leave out the remainder are an error in an evaluation, also after functions of package data. A
// researcher's loss over such a pipeline was that of fewer examples.
func TestEvaluate_refusesAPipelineThatDropsTheRemainder(t *testing.T) {
	set, err := data.New(data.X([]float32{1, 2, 3, 4, 5}, 5))
	require.NoError(t, err)
	count := loop.StepFunc[int, data.Batch](func(_ context.Context, n int, b data.Batch) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("rows", float64(b.Size))
		return n + b.Size, logs, nil
	})
	mapped := func(batches iter.Seq2[data.Batch, error]) iter.Seq2[data.Batch, error] {
		return data.Map(batches, func(b data.Batch) (data.Batch, error) { return b, nil })
	}
	over := func(b data.Batches, from func(data.Batches, int64) iter.Seq2[data.Batch, error]) loop.Source[data.Batch] {
		return loop.From(func(position int64) iter.Seq2[data.Batch, error] { return mapped(from(b, position)) })
	}
	type source = loop.Source[data.Batch]
	for name, row := range map[string]struct {
		data source
		want int64 // 0 for an error
	}{
		"From":              {over(set.Batches(2), data.Batches.From), 0},
		"From, shuffled":    {over(set.Batches(2, data.Shuffle(1)), data.Batches.From), 0},
		"WholeFrom":         {over(set.Batches(2), data.Batches.WholeFrom), 5},
		"From, all full":    {over(set.Batches(5), data.Batches.From), 5},
		"Dropped":           {over(set.Batches(2, data.Dropped), data.Batches.From), 4},
		"Kept":              {over(set.Batches(2, data.Kept), data.Batches.From), 5},
		"All":               {loop.Data[data.Batch](set.Batches(2).All()), 0},
		"All, by Map":       {loop.Data[data.Batch](mapped(set.Batches(2).All())), 0},
		"All, regrouped":    {loop.Data[data.Batch](data.Rebatch(set.Batches(2).All(), 4, data.Kept)), 0},
		"All, filtered":     {loop.Data[data.Batch](data.Filter(set.Batches(2).All(), func(data.Batch) bool { return true })), 0},
		"All, in a buffer":  {loop.Data[data.Batch](data.ShuffleBuffer(set.Batches(2).All(), 2, 1)), 0},
		"All, taken":        {loop.Data[data.Batch](data.Take(set.Batches(2).All(), 9)), 0},
		"All with the rest": {loop.Data[data.Batch](set.Batches(2, data.Kept).All()), 5},
		"the batches":       {set.Batches(2), 5},
	} {
		result, _, err := loop.Evaluate("test", count, row.data).Run(t.Context(), 0)
		if row.want == 0 {
			require.ErrorContains(t, err, "the batches leave out the examples of the data that do not fill a batch (1)", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, row.want, result.Elapsed.Samples, name)

		trained, err := loop.New(loop.On(loop.EachStep, count)).Run(t.Context(), 0, row.data)
		require.NoError(t, err, name)
		require.LessOrEqual(t, trained.Elapsed.Samples, row.want, name)
	}
}

// A shuffled set's All has the order of its first epoch in each pass: a run that would repeat it is refused.
func TestData_refusesTheFirstEpochAgain(t *testing.T) {
	set, err := data.New(data.X([]float32{1, 2, 3, 4, 5, 6}, 6))
	require.NoError(t, err)
	batches := set.Batches(2, data.Shuffle(1))
	order := func(source loop.Source[data.Batch], until loop.Period) ([]float32, error) {
		var seen []float32
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, n int, b data.Batch) (int, loop.Logs, error) {
			seen = append(seen, b.Fields[0].Array.Flat.([]float32)...)
			return n, loop.Logs{}, nil
		}))).Run(t.Context(), 0, source, loop.Until(until))
		return seen, err
	}
	all := loop.Data[data.Batch](batches.All())
	first, err := order(all, loop.Epochs(1))
	require.NoError(t, err)
	seen, err := order(all, loop.Epochs(2))
	require.ErrorContains(t, err, "loop: step 4: data: the iterator yields epoch 0 of a shuffled set again, in the same order: give the run the Batches of the set instead of their All")
	require.Equal(t, first, seen)

	seen, err = order(batches, loop.Epochs(2))
	require.NoError(t, err)
	require.Len(t, seen, 12)
	require.NotEqual(t, first, seen[6:])
	byHand := loop.Data[data.Batch](func(yield func(data.Batch, error) bool) {
		for b := range batches.All() {
			if !yield(data.Batch{Fields: b.Fields, Size: b.Size}, nil) { // it knows no epoch
				return
			}
		}
	})
	seen, err = order(byHand, loop.Epochs(2))
	require.NoError(t, err)
	require.Equal(t, first, seen[6:], "a source of the caller decides about its order")
}
