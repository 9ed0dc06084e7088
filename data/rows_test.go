package data

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// A batch counts its examples, also if no Size is given.
func TestR10_aBatchCountsItself(t *testing.T) {
	mask := Named(Mask, []bool{true, true, false}, 3)
	x := X([]float32{1, 2, 3}, 3, 1)
	for name, row := range map[string]struct {
		batch Batch
		want  int
	}{
		"without fields":      {Batch{}, 1},
		"by hand":             {Batch{Fields: []Field{x}}, 3},
		"a scalar first":      {Batch{Fields: []Field{Named("rate", []float32{1}), x}}, 3},
		"scalars alone":       {Batch{Fields: []Field{Named("rate", []float32{1})}}, 1},
		"of no examples":      {Batch{Fields: []Field{X([]float32{}, 0, 4)}}, 0},
		"by hand, masked":     {Batch{Fields: []Field{x, mask}}, 2},
		"as it says":          {Batch{Fields: []Field{x}, Size: 2}, 2},
		"with a mask of rank": {Batch{Fields: []Field{x, Named(Mask, []bool{true, true, false}, 3, 1)}}, 3},
	} {
		require.Equal(t, row.want, row.batch.Samples(), name)
	}
	_, err := Batch{Fields: []Field{x, Named("z", []float32{1, 2}, 2)}}.Rows()
	require.EqualError(t, err, `data: field "z" of the batch has 2 rows, but field "x" has 3`)
}

// Rows are cut and filled up; examples are counted.
func TestR06_cutsAndPadsRows(t *testing.T) {
	batch := Batch{Size: 3, At: 9, Fields: []Field{X([]float32{1, 2, 3}, 3)}}
	padded, err := Pad(batch, 6)
	require.NoError(t, err)
	again, err := Pad(padded, 8)
	require.NoError(t, err)
	require.Equal(t, 3, again.Size)
	require.Equal(t, Batch{Size: 3, At: 9, Fields: []Field{X([]float32{1, 2, 3, 3, 3, 3, 3, 3}, 8),
		Named(Mask, []bool{true, true, true, false, false, false, false, false}, 8)}}, again)

	bare := padded // as a prediction pads: without a mask
	bare.Fields = bare.Fields[:1]
	again, err = Pad(bare, 8)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, true, false, false, false, false, false}, again.Fields[1].Array.Flat)

	for _, b := range []Batch{padded, bare} {
		for i, want := range []int{2, 1, 0} {
			part, err := b.Slice(2*i, 2*i+2)
			require.NoError(t, err)
			require.Equal(t, want, part.Size)
			require.Equal(t, 9+2*i, part.At)
			require.Equal(t, []int{2}, part.Fields[0].Array.Dims)
		}
	}
	for want, err := range map[string]error{
		"data: slice a batch of 6 rows: from 4 to 7":                                                                                     datatest.Second(padded.Slice(4, 7)),
		`data: slice a batch: field "x" has dims [3], expected 4 examples on the first axis`:                                             datatest.Second(Batch{Size: 4, Fields: batch.Fields}.Slice(0, 1)),
		`data: slice a batch: field "mask" is float32 [3], expected a bool for each of 3 rows: rename it if it is not a mask of padding`: datatest.Second(Batch{Size: 3, Fields: []Field{Named(Mask, []float32{1, 2, 3}, 3)}}.Slice(0, 1)),
		`data: rebatch: the batch has 6 rows, of which Size counts 3 as examples, and no field "mask" that marks them`:                   datatest.Second(lastOf(Rebatch(Items([]Batch{bare}), 4, Kept))),
	} {
		require.EqualError(t, err, want)
	}

	var sizes, rows []int
	for b, err := range Rebatch(Items([]Batch{padded}), 4, Padded) {
		require.NoError(t, err)
		n, err := b.Rows()
		require.NoError(t, err)
		sizes, rows = append(sizes, b.Samples()), append(rows, n)
	}
	require.Equal(t, [][]int{{3, 0}, {4, 4}}, [][]int{sizes, rows})
	set, err := Collect(Items([]Batch{padded}), 6)
	require.NoError(t, err)
	require.Equal(t, 6, set.Len())
	require.True(t, set.has(Mask))
}
