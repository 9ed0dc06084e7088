package data

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
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
	require.Equal(t, []int{2, 0, 1}, sizes(set.Batches(3, KeepRemainder()).All()))
	require.Equal(t, []int{2, 0, 1}, sizes(OnDevice(set).Batches(3, KeepRemainder()).All()))
	require.Len(t, sizes(set.Batches(3, Shuffle(1)).sequence(0, 3)), 6)
	require.Len(t, sizes(OnDevice(set).Batches(3, Shuffle(1)).sequence(0, 3)), 6)
	require.Equal(t, []int{2, 1}, sizes(Rebatch(set.Batches(3, KeepRemainder()).All(), 4, Padded)))
	require.Equal(t, []int{2}, sizes(shard.Batches(3).All()))
	padded := Map(OnDevice(set).Batches(3, KeepRemainder()).All(), func(b Batch) (Batch, error) { return Pad(b, 4) })
	require.Equal(t, []int{2, 0, 1}, sizes(padded))

	byHand, err := Batch{Fields: set.Fields(), Size: 7}.Slice(0, 3)
	require.NoError(t, err)
	require.Equal(t, 2, byHand.Samples())
	real, err := set.Where(func(b Batch) bool { return b.Samples() == 1 })
	require.NoError(t, err)
	require.Equal(t, []float32{0, 2, 6}, real.Fields()[0].Array.Flat)
}

// No two batches get the same draws, whatever repeats, divides or makes them. A resumed run has those of the whole run.
func TestAugment_drawsAnewForEachBatch(t *testing.T) {
	images := Named("x", make([]float32, 8*64), 8, 1, 64, 1)
	for i := range images.Array.Flat.([]float32) {
		images.Array.Flat.([]float32)[i] = float32(i % 64)
	}
	set, err := New(images)
	require.NoError(t, err)
	stream := set.Batches(2)
	hand := func(yield func(Batch, error) bool) {
		for yield(Batch{Fields: []Field{images}, Size: 8}, nil) {
		}
	}
	change := Augment(3, "x", RandomCrop(1, 64, 1<<14)) // of a draw in 2^15
	draws := func(batches iter.Seq2[Batch, error], n int64) (all [][2]int) {
		for b, err := range Take(batches, n) {
			require.NoError(t, err)
			all = append(all, [2]int{b.Epoch, b.At})
		}
		return all
	}
	require.Equal(t, draws(Map(set.Batches(2).From(0), change), 17)[5:], draws(Map(set.Batches(2).From(5), change), 12))
	for name, source := range map[string]iter.Seq2[Batch, error]{
		"forever":        set.Batches(2).From(0),
		"repeated":       Repeat(stream.All(), 5),
		"for ever":       RepeatForever(stream.All()),
		"epochs":         RepeatForever(set.Batches(2, Shuffle(1)).sequence(0, 2)),
		"by hand":        hand,
		"ended by hand":  RepeatForever(Take(hand, 3)),
		"passes":         Passes(func(pass int) iter.Seq2[Batch, error] { return ShuffleBuffer(stream.All(), 3, uint64(pass)) }),
		"buffer":         ShuffleBuffer(RepeatForever(stream.All()), 3, 1),
		"rebatched":      RepeatForever(Rebatch(stream.All(), 3, Kept)),
		"rebatch":        Rebatch(RepeatForever(stream.All()), 3, Kept),
		"rebatched hand": Rebatch(hand, 3, Kept),
		"window of hand": Prefetch(Filter(hand, func(Batch) bool { return true }), 2),
	} {
		t.Run(name, func(t *testing.T) {
			whole := draws(Map(source, change), 17)
			seen := map[[2]int]bool{}
			for _, at := range whole {
				require.False(t, seen[at], "%v: the place %v comes twice", whole, at)
				seen[at] = true
			}
			require.Equal(t, whole, draws(ParallelMap(source, 3, change), 17))
			resumed := loop.Data[Batch](ParallelMap(source, 2, change)).From(5)
			require.Equal(t, whole[5:], draws(resumed, int64(len(whole)-5)))
		})
	}
	flipped := func(source iter.Seq2[Batch, error]) (all []string) {
		for b, err := range Take(Map(source, Augment(3, "x", FlipHorizontal())), 4) {
			require.NoError(t, err)
			word := ""
			for i := range 8 {
				word += map[bool]string{true: "1", false: "0"}[b.Fields[0].Array.Flat.([]float32)[i*64] != 0]
			}
			all = append(all, word)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	require.Len(t, flipped(hand), 4)
	require.Len(t, flipped(RepeatForever(set.Batches(8).All())), 4)
}
