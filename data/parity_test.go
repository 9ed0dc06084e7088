package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestB111_elevenByFour(t *testing.T) {
	values := make([]float32, 11)
	for i := range values {
		values[i] = float32(i)
	}
	set, err := data.New(data.X(values, 11))
	require.NoError(t, err)
	deal := func(epochs int64, options ...data.Option) (sizes []int, order []float32) {
		for batch, err := range data.Prefetch(data.Take(set.Batches(4, append(options, data.Kept)...).From(0), 3*epochs), 4) {
			require.NoError(t, err)
			sizes = append(sizes, batch.Samples())
			order = append(order, batch.Fields[0].Array.Flat.([]float32)...)
		}
		return sizes, order
	}
	sizes, order := deal(1)
	require.Equal(t, []int{4, 4, 3}, sizes)
	require.Equal(t, values, order)
	sizes, order = deal(2, data.Shuffle(1))
	require.Equal(t, []int{4, 4, 3, 4, 4, 3}, sizes)
	require.ElementsMatch(t, values, order[:11])
	require.ElementsMatch(t, values, order[11:])
	require.NotEqual(t, order[:11], order[11:], "each pass has an order of its own")
}
