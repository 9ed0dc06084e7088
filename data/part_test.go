package data_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// The parts of all ranks, in order, are the batches that one process has, for any number of ranks.
func TestShare_union(t *testing.T) {
	for _, of := range []int{1, 2, 3, 4, 6} {
		for _, masked := range []bool{false, true} {
			for name, row := range map[string]struct {
				from, to int64
				opts     []data.Option
			}{
				"in order": {0, 4, nil}, "shuffled": {0, 6, []data.Option{data.Shuffle(7)}}, "resumed": {5, 9, []data.Option{data.Shuffle(7)}},
				"with a remainder": {0, 3, []data.Option{data.Shuffle(1), data.Kept}},
			} {
				some := func(b data.Batches) iter.Seq2[data.Batch, error] { return data.Take(b.From(row.from), row.to-row.from) }
				t.Run(fmt.Sprintf("%s of %d, masked %t", name, of, masked), func(t *testing.T) {
					set := numbered(t, 60, masked)
					size := 24 // leaves 12
					var parts, cut [][]data.Batch
					for rank := range of {
						parts = append(parts, collected(t, some(set.Batches(size, append(slices.Clone(row.opts), data.Share(rank, of))...))))
						cut = append(cut, collected(t, data.ShareOf(some(set.Batches(size, row.opts...)), rank, of)))
						for i := range parts[rank] { // they differ in where they lie
							require.Equal(t, parts[rank][i].Part, cut[rank][i].Part)
							require.Equal(t, parts[rank][i].Fields, cut[rank][i].Fields)
							require.Equal(t, [2]int{parts[rank][i].At, parts[rank][i].Size}, [2]int{cut[rank][i].At, cut[rank][i].Size})
						}
					}
					for i, whole := range collected(t, some(set.Batches(size, row.opts...))) {
						var rows []int32
						examples := 0
						for rank := range of {
							part := parts[rank][i]
							require.Equal(t, whole.Samples(), part.Samples())
							require.Equal(t, of > 1, part.Partial())
							require.Equal(t, whole.Deal, part.Deal)
							require.Equal(t, whole.At+len(rows), part.At)
							x, err := part.Field("x")
							require.NoError(t, err)
							rows = append(rows, x.Flat.([]int32)...)
							examples += part.Size
						}
						x, err := whole.Field("x")
						require.NoError(t, err)
						require.Equal(t, x.Flat, rows)
						require.Equal(t, whole.Size, examples)
					}
				})
			}
		}
	}
}

func numbered(t *testing.T, n int, masked bool) *data.Set {
	x, mask := make([]int32, n), make([]bool, n)
	for i := range x {
		x[i], mask[i] = int32(i), i%5 != 0
	}
	fields := []data.Field{data.X(x, n)}
	if masked {
		fields = append(fields, data.Named(data.Mask, mask, n))
	}
	set, err := data.New(fields...)
	require.NoError(t, err)
	return set
}

func collected(t *testing.T, source iter.Seq2[data.Batch, error]) (all []data.Batch) {
	for b, err := range source {
		require.NoError(t, err)
		all = append(all, b)
	}
	return all
}

// A function that changes batches is given the part alone, and a set on the device has its places.
func TestShare_changes(t *testing.T) {
	set := numbered(t, 12, false)
	seen := make(chan int, 10)
	changed, err := set.MapBatches(func(b data.Batch) (data.Batch, error) {
		seen <- b.Fields[0].Array.Len()
		return b, nil
	})
	require.NoError(t, err)
	require.Len(t, collected(t, changed.Batches(6, data.Share(1, 3)).All()), 2)
	require.Equal(t, []int{2, 2}, []int{<-seen, <-seen})
	for _, b := range collected(t, data.OnDevice(set).Batches(6, data.Share(2, 3)).All()) {
		places, err := b.Places()
		require.NoError(t, err)
		require.Equal(t, []int32{int32(b.At), int32(b.At) + 1}, places)
		require.Equal(t, data.Part{Rank: 2, Of: 3, Samples: 6}, b.Part)
	}
}

func TestShare_errors(t *testing.T) {
	set := numbered(t, 60, false)
	of := func(source iter.Seq2[data.Batch, error]) error {
		for _, err := range source {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for want, source := range map[string]iter.Seq2[data.Batch, error]{
		"10 rows cannot be divided evenly among 4 processes: use a batch size that is a multiple of 4":          set.Batches(10, data.Share(0, 4)).All(),
		"the last batch of an epoch: 15 rows cannot be divided evenly among 2 processes":                        numbered(t, 55, false).Batches(20, data.Share(0, 2), data.Kept).All(),
		"share 2 of 2: expected at least 1 process, and a rank from 0":                                          set.Batches(10, data.Share(2, 2)).All(),
		"share 0 of 0: expected at least 1 process":                                                             set.Batches(10, data.Share(0, 0)).All(),
		"data: share -1 of 2: expected":                                                                         data.ShareOf(set.Batches(10).All(), -1, 2),
		"data: share: ":                                                                                         data.ShareOf(nil, 0, 2),
		"data: batch 1: share 0 of 2: the batch is part 1 of 2 already":                                         data.ShareOf(set.Batches(10, data.Share(1, 2)).All(), 0, 2),
		"data: batch 1: share 1 of 3: 10 rows cannot be divided evenly among 3":                                 data.ShareOf(set.Batches(10).All(), 1, 3),
		"data: rebatch: the batch is part 1 of 2 of a larger one: rebatch first, then share it by data.ShareOf": data.Rebatch(set.Batches(10, data.Share(1, 2)).All(), 5, data.Dropped),
	} {
		require.ErrorContains(t, of(source), want)
	}
}

func ExampleShare() {
	set, err := data.New(data.X([]float32{0, 1, 2, 3, 4, 5, 6, 7}, 8))
	if err != nil {
		panic(err)
	}
	for b, err := range set.Batches(4, data.Share(1, 2)).All() { // of rank 1 of 2 processes
		if err != nil {
			panic(err)
		}
		fmt.Println(b.Fields[0].Array.Flat, "of", b.Samples())
	}
	// Output:
	// [2 3] of 4
	// [6 7] of 4
}
