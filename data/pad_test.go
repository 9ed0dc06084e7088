package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestPad(t *testing.T) {
	batch := data.Batch{Size: 2, Epoch: 3, Fields: []data.Field{
		{Name: "x", Array: data.Array{Flat: []float32{1, 2, 3, 4}, Dims: []int{2, 2}}},
		{Name: "y", Array: data.Array{Flat: []int64{5, 6}, Dims: []int{2}}},
	}}
	padded, err := data.Pad(batch, 4)
	require.NoError(t, err)
	require.Equal(t, data.Batch{Size: 2, Epoch: 3, Fields: []data.Field{
		{Name: "x", Array: data.Array{Flat: []float32{1, 2, 3, 4, 3, 4, 3, 4}, Dims: []int{4, 2}}},
		{Name: "y", Array: data.Array{Flat: []int64{5, 6, 6, 6}, Dims: []int{4}}},
		{Name: "mask", Array: data.Array{Flat: []bool{true, true, false, false}, Dims: []int{4}}},
	}}, padded)
	require.Len(t, batch.Fields, 2, "the batch is left as it was")

	masked := data.Batch{Size: 2, Fields: []data.Field{{Name: data.Mask, Array: data.Array{Flat: []bool{true, false}, Dims: []int{2}}}}}
	padded, err = data.Pad(masked, 3)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, false}, padded.Fields[0].Array.Flat)
	require.Equal(t, []bool{true, false}, masked.Fields[0].Array.Flat)

	for name, row := range map[string]struct {
		batch data.Batch
		size  int
		err   string
	}{
		"smaller":    {batch, 1, "data: pad a batch of 2 rows to 1: expected a size of at least 1, and at most that number of rows"},
		"empty":      {data.Batch{}, 4, "data: pad a batch of 0 rows to 4: expected a size of at least 1, and at most that number of rows"},
		"wrong mask": {data.Batch{Size: 2, Fields: []data.Field{{Name: data.Mask, Array: data.Array{Flat: []int32{1, 0}, Dims: []int{2}}}}}, 4, `data: pad: field "mask" is int32 [2], expected a bool for each of 2 rows: rename it if it is not a mask of padding`},
		"a scalar":   {data.Batch{Size: 2, Fields: []data.Field{{Name: "x", Array: data.Array{Flat: []int32{1}}}}}, 4, `data: pad: field "x" has dims [], expected 2 examples on the first axis`},
	} {
		_, err := data.Pad(row.batch, row.size)
		require.EqualError(t, err, row.err, name)
	}
}
