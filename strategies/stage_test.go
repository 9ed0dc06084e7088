package strategies

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// Adjacent batches are read in place; all others are copied, to the same elements.
func TestSlot_stack(t *testing.T) {
	const size, wide, k = 4, 3, 5
	x, y := make([]float32, 60*wide), make([]int32, 60)
	for i := range x {
		x[i] = float32(i)
	}
	for i := range y {
		y[i] = int32(i)
	}
	set, err := data.New(data.X(x, 60, wide), data.Y(y, 60))
	require.NoError(t, err)
	fields := []field{
		{Input: Input{Name: "x", Shape: shapes.Make(dtypes.Float32, size, wide)}, each: shapes.Make(dtypes.Float32, size, wide), starts: make([]int, 1)},
		{Input: Input{Name: "y", Shape: shapes.Make(dtypes.Int32, size)}, each: shapes.Make(dtypes.Int32, size), starts: make([]int, 1)},
	}
	block := func(skip int64, n int, options ...data.Option) (batches []data.Batch) {
		for b, err := range set.Batches(size, options...).From(skip) {
			require.NoError(t, err)
			if batches = append(batches, b); len(batches) == n {
				break
			}
		}
		return batches
	}
	reversed := block(0, k)
	for i, b := range block(0, k) {
		reversed[k-1-i] = b
	}
	apart := block(0, k)
	apart[2].Fields[1].Array.Flat = slices.Clone(apart[2].Fields[1].Array.Flat.([]int32))
	rows := []struct {
		name    string
		batches []data.Batch
		copied  bool
	}{
		{"in order", block(0, k), false},
		{"from a later one on", block(7, k), false},
		{"shuffled", block(0, k, data.Shuffle(3)), false},
		{"shuffled, over the end of an epoch", block(12, k, data.Shuffle(3)), false},
		{"fewer, with others behind them", block(3, 2), false},
		{"fewer, at the end of the set", block(12, 3), true},
		{"in order, over the end of an epoch", block(12, k), true},
		{"in another order", reversed, true},
		{"one field of one of them elsewhere", apart, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := &stagedRun{}
			host := s.stack(fields, row.batches, k, 0, 1)
			require.Equal(t, row.copied, s.stacks != nil)
			require.Len(t, host[0], k*size*wide)
			require.Len(t, host[1], k*size)
			for i, b := range row.batches {
				require.Equal(t, b.Fields[0].Array.Flat, host[0].([]float32)[i*size*wide:(i+1)*size*wide])
				require.Equal(t, b.Fields[1].Array.Flat, host[1].([]int32)[i*size:(i+1)*size])
			}
		})
	}
}
