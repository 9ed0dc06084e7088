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
		"DropRemainder":     {over(set.Batches(2, data.DropRemainder()), data.Batches.From), 4},
		"KeepRemainder":     {over(set.Batches(2, data.KeepRemainder()), data.Batches.From), 5},
		"All":               {loop.Data[data.Batch](set.Batches(2).All()), 0},
		"All, by Map":       {loop.Data[data.Batch](mapped(set.Batches(2).All())), 0},
		"All with the rest": {loop.Data[data.Batch](set.Batches(2, data.KeepRemainder()).All()), 5},
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
