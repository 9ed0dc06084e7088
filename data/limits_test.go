package data

import (
	"iter"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// Every number that says a size or a limit may be anything: it is an error that names it, or it works. None ends the
// process, hangs, or takes the memory that it speaks of.
func TestR29_anySizeIsAnErrorOrWorks(t *testing.T) {
	set := numbered(t, 6)
	items := func() iter.Seq2[int, error] { return Items([]int{1, 2, 3}) }
	batch := Batch{Size: 2, Fields: []Field{X([]float32{1, 2}, 2)}}
	itself := func(n int) int { return n }
	datatest.Sizes(t, map[string]func(n int) error{
		"Batches":                func(n int) error { return datatest.First(set.Batches(n).All()) },
		"Batches, Kept":          func(n int) error { return datatest.First(set.Batches(n, Kept, Shuffle(1)).All()) },
		"Resident.Batches":       func(n int) error { return datatest.First(OnDevice(set).Batches(n, Kept).All()) },
		"Batches.From":           func(n int) error { return datatest.First(set.Batches(2).From(int64(n))) },
		"Batches.From, shuffled": func(n int) error { return datatest.First(set.Batches(2, Shuffle(1)).From(int64(n))) },
		"Set.Slice":              func(n int) error { return datatest.Second(set.Slice(0, n)) },
		"Set.Slice from":         func(n int) error { return datatest.Second(set.Slice(n, n)) },
		"Set.Gather":             func(n int) error { return datatest.Second(set.Gather([]int{n})) },
		"Set.Shard":              func(n int) error { return datatest.Second(set.Shard(0, n, Padded)) },
		"Set.Shard, the number":  func(n int) error { return datatest.Second(set.Shard(n, math.MaxInt, Kept)) },
		"Batch.Slice":            func(n int) error { return datatest.Second(batch.Slice(0, n)) },
		"Batch.Size":             func(n int) error { return datatest.Second(Pad(Batch{Size: n, Fields: batch.Fields}, 4)) },
		"Pad":                    func(n int) error { return datatest.Second(Pad(batch, n)) },
		"Rebatch":                func(n int) error { return datatest.First(Rebatch(set.Batches(2).All(), n, Kept)) },
		"Rebatch, Padded":        func(n int) error { return datatest.First(Rebatch(set.Batches(2).All(), n, Padded)) },
		"Rebatch, the remainder": func(n int) error { return datatest.First(Rebatch(set.Batches(2).All(), 2, Remainder(n))) },
		"Collect":                func(n int) error { return datatest.Second(Collect(set.Batches(2).All(), n)) },
		"Chunk":                  func(n int) error { return datatest.First(Chunk(items(), n, Kept)) },
		"Window":                 func(n int) error { return datatest.First(Window(items(), n, 1)) },
		"Window, the stride":     func(n int) error { return datatest.First(Window(items(), 2, n)) },
		"Interleave":             func(n int) error { return datatest.First(Interleave(n, items(), items())) },
		"Take":                   func(n int) error { return datatest.First(Take(items(), int64(n))) },
		"Repeat":                 func(n int) error { return datatest.First(Repeat(items(), n)) },
		"Prefetch":               func(n int) error { return datatest.First(Prefetch(items(), n)) },
		"ParallelMap": func(n int) error {
			return datatest.First(ParallelMap(items(), n, func(i int) (int, error) { return i, nil }))
		},
		"ShuffleBuffer":     func(n int) error { return datatest.First(ShuffleBuffer(items(), n, 1)) },
		"Shard":             func(n int) error { return datatest.First(Shard(items(), 0, n)) },
		"Shard, the number": func(n int) error { return datatest.First(Shard(items(), n, math.MaxInt)) },
		"PadSequences":      func(n int) error { _, _, err := PadSequences([][]int32{{1}}, 0, n); return err },
		"Buckets":           func(n int) error { return datatest.First(Buckets(items(), n, Kept, itself, 3)) },
		"Buckets, a length": func(n int) error { return datatest.First(Buckets(items(), 2, Kept, itself, n)) },
		"Buckets, an item":  func(n int) error { return datatest.First(Buckets(Items([]int{n}), 1, Kept, itself, 3)) },
		"OneHot":            func(n int) error { return datatest.Second(OneHot(Array{[]int32{0}, []int{1}}, n)) },
		"NewArray":          func(n int) error { return Array{[]bool{}, []int{n, 0}}.Check() },
	})
}

// A message names the setting.
func TestR41_messagesOfBatches(t *testing.T) {
	empty, err := New(X([]float32{}, 0))
	require.NoError(t, err)
	require.EqualError(t, datatest.First(empty.Batches(4).All()), "data: batches of 4 from 0 examples: the set is empty: check its source (data.New, a slice, Where, a file)")
	masked := Batch{Size: 1, Fields: []Field{Named(Mask, []float32{1, 0}, 1, 2)}}
	_, err = Pad(masked, 2)
	require.EqualError(t, err, `data: pad: field "mask" is float32 [1 2], expected a bool for each of 1 rows: rename it if it is not a mask of padding`)
}
