package parquet

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// Batches have their size, the last one the rest; a consumer that stops gets no more.
func TestBatches(t *testing.T) {
	type row struct {
		X float32 `parquet:"x"`
	}
	rows := make([]row, 7)
	for i := range rows {
		rows[i].X = float32(i)
	}
	file := written(t, rows)
	for size, want := range map[int64][]int{0: {7}, 1: {1, 1, 1, 1, 1, 1, 1}, 3: {3, 3, 1}, 7: {7}, 100: {7}} {
		var sizes []int
		next := float32(0)
		require.NoError(t, batches(bytes.NewReader(file), int64(len(file)), Format{}, size, func(b data.Batch, err error) bool {
			require.NoError(t, err)
			require.Equal(t, int(next), b.At)
			for _, x := range b.Fields[0].Array.Flat.([]float32) {
				require.Equal(t, next, x)
				next++
			}
			sizes = append(sizes, b.Size)
			return true
		}))
		require.Equal(t, want, sizes, "size %d", size)
	}
	n := 0
	require.NoError(t, batches(bytes.NewReader(file), int64(len(file)), Format{}, 2, func(data.Batch, error) bool { n++; return n < 2 }))
	require.Equal(t, 2, n)
	empty := written(t, []row{})
	err := batches(bytes.NewReader(empty), int64(len(empty)), Format{}, 2, func(data.Batch, error) bool { n++; return true })
	require.ErrorContains(t, err, "the file has no examples")
	require.Equal(t, 2, n)
}
