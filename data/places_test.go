package data

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
)

// A set's mask determines which rows are examples, for any batch size.
func TestSize_isWhatTheMaskCounts(t *testing.T) {
	mask := []bool{true, false, true, false, false, false, true}
	set, err := New(X([]float32{0, 1, 2, 3, 4, 5, 6}, 7), Named(Mask, mask, 7))
	require.NoError(t, err)
	five, err := New(X([]float32{0, 1, 2, 3, 4}, 5))
	require.NoError(t, err)
	shard, err := five.Shard(1, 2, Padded)
	require.NoError(t, err)
	sizes := func(batches iter.Seq2[Batch, error]) (all []int) {
		for b, err := range batches {
			require.NoError(t, err)
			host, err := b.OnHost()
			require.NoError(t, err)
			m, ok := host.mask()
			require.True(t, ok)
			require.Equal(t, trues(m), b.Samples())
			require.Equal(t, trues(m), host.Samples())
			all = append(all, b.Samples())
		}
		return all
	}
	require.Equal(t, []int{2, 0, 1}, sizes(set.Batches(3, Kept).All()))
	require.Equal(t, []int{2, 0, 1}, sizes(OnDevice(set).Batches(3, Kept).All()))
	require.Len(t, sizes(set.Batches(3, Shuffle(1)).sequence(0, 3)), 6)
	require.Len(t, sizes(OnDevice(set).Batches(3, Shuffle(1)).sequence(0, 3)), 6)
	require.Equal(t, []int{2, 1}, sizes(Rebatch(set.Batches(3, Kept).All(), 4, Padded)))
	require.Equal(t, []int{2}, sizes(shard.Batches(3).All()))
	padded := Map(OnDevice(set).Batches(3, Kept).All(), func(b Batch) (Batch, error) { return Pad(b, 4) })
	require.Equal(t, []int{2, 0, 1}, sizes(padded))

	byHand, err := Batch{Fields: set.Fields(), Size: 7}.Slice(0, 3)
	require.NoError(t, err)
	require.Equal(t, 2, byHand.Samples())
	real, err := set.Where(func(b Batch) bool { return b.Samples() == 1 })
	require.NoError(t, err)
	require.Equal(t, []float32{0, 2, 6}, real.Fields()[0].Array.Flat)
}
