package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/tfrecord"
)

// Every number that says a size or a limit may be anything: it is an error that names it, or it works. None ends the
// process, hangs, or takes the memory that it speaks of.
func TestR29_anySizeIsAnErrorOrWorks(t *testing.T) {
	set := numbered(t, 6)
	items := func() iter.Seq2[int, error] { return Items([]int{1, 2, 3}) }
	batch := Batch{Size: 2, Fields: []Field{X([]float32{1, 2}, 2)}}
	pictures := Array{make([]uint8, 8), []int{2, 2, 2, 1}}
	// A header that is right, of a record that is larger than any file.
	record := binary.LittleEndian.AppendUint64(nil, math.MaxInt64-2)
	record = binary.LittleEndian.AppendUint32(record, tfrecord.Sum(record))
	largest := idx(0x08, []uint32{1<<31 - 1, 1<<31 - 1, 1})
	picture := pngOf(t, ramp(3, 3))
	itself := func(n int) int { return n }
	image := func(f ImageFormat) error { return second(ReadImage(bytes.NewReader(picture), f)) }
	rows := map[string]func(n int) error{
		"Batches":                 func(n int) error { return first(set.Batches(n).All()) },
		"Batches, KeepRemainder":  func(n int) error { return first(set.Batches(n, KeepRemainder(), Shuffle(1)).All()) },
		"Resident.Batches":        func(n int) error { return first(OnDevice(set).Batches(n, KeepRemainder()).All()) },
		"Batches.From":            func(n int) error { return first(set.Batches(2).From(int64(n))) },
		"Batches.From, shuffled":  func(n int) error { return first(set.Batches(2, Shuffle(1)).From(int64(n))) },
		"Set.Slice":               func(n int) error { return second(set.Slice(0, n)) },
		"Set.Slice from":          func(n int) error { return second(set.Slice(n, n)) },
		"Set.Gather":              func(n int) error { return second(set.Gather([]int{n})) },
		"Set.Shard":               func(n int) error { return second(set.Shard(0, n, Padded)) },
		"Set.Shard, the number":   func(n int) error { return second(set.Shard(n, math.MaxInt, Kept)) },
		"Batch.Slice":             func(n int) error { return second(batch.Slice(0, n)) },
		"Batch.Size":              func(n int) error { return second(Pad(Batch{Size: n, Fields: batch.Fields}, 4)) },
		"Pad":                     func(n int) error { return second(Pad(batch, n)) },
		"Rebatch":                 func(n int) error { return first(Rebatch(set.Batches(2).All(), n, Kept)) },
		"Rebatch, Padded":         func(n int) error { return first(Rebatch(set.Batches(2).All(), n, Padded)) },
		"Rebatch, the remainder":  func(n int) error { return first(Rebatch(set.Batches(2).All(), 2, Remainder(n))) },
		"Collect":                 func(n int) error { return second(Collect(set.Batches(2).All(), n)) },
		"Chunk":                   func(n int) error { return first(Chunk(items(), n, Kept)) },
		"Window":                  func(n int) error { return first(Window(items(), n, 1)) },
		"Window, the stride":      func(n int) error { return first(Window(items(), 2, n)) },
		"Interleave":              func(n int) error { return first(Interleave(n, items(), items())) },
		"Take":                    func(n int) error { return first(Take(items(), int64(n))) },
		"Repeat":                  func(n int) error { return first(Repeat(items(), n)) },
		"Prefetch":                func(n int) error { return first(Prefetch(items(), n)) },
		"ParallelMap":             func(n int) error { return first(ParallelMap(items(), n, func(i int) (int, error) { return i, nil })) },
		"ShuffleBuffer":           func(n int) error { return first(ShuffleBuffer(items(), n, 1)) },
		"Shard":                   func(n int) error { return first(Shard(items(), 0, n)) },
		"Shard, the number":       func(n int) error { return first(Shard(items(), n, math.MaxInt)) },
		"PadSequences":            func(n int) error { _, _, err := PadSequences([][]int32{{1}}, 0, n); return err },
		"Buckets":                 func(n int) error { return first(Buckets(items(), n, Kept, itself, 3)) },
		"Buckets, a length":       func(n int) error { return first(Buckets(items(), 2, Kept, itself, n)) },
		"Buckets, an item":        func(n int) error { return first(Buckets(Items([]int{n}), 1, Kept, itself, 3)) },
		"OneHot":                  func(n int) error { return second(OneHot(Array{[]int32{0}, []int{1}}, n)) },
		"RandomCrop":              func(n int) error { return augmented(pictures, RandomCrop(n, 1, 0)) },
		"RandomCrop, the padding": func(n int) error { return augmented(pictures, RandomCrop(1, 1, n)) },
		"RandomShift":             func(n int) error { return augmented(pictures, RandomShift(n, n)) },
		"ImageFormat.Height":      func(n int) error { return image(ImageFormat{Height: n, Width: 1, Resize: Stretch}) },
		"ImageFormat, both":       func(n int) error { return image(ImageFormat{Height: n, Width: n, Resize: Stretch}) },
		"ImageFormat.Channels":    func(n int) error { return image(ImageFormat{Height: 1, Width: 1, Channels: n, Resize: Stretch}) },
		"ImageFormat.Resize":      func(n int) error { return image(ImageFormat{Height: 3, Width: 3, Resize: Resize(n)}) },
		"ImageFormat.MaxPixels":   func(n int) error { return image(ImageFormat{Height: 3, Width: 3, MaxPixels: n}) },
		"ReadIDX":                 func(n int) error { return second(ReadIDX(bytes.NewReader(largest), int64(n))) },
		"TFRecords":               func(n int) error { return first(TFRecords(bytes.NewReader(record), int64(n))) },
		"CSV.MaxRow":              func(n int) error { return second(ReadCSV(strings.NewReader("a\n1\n"), CSV{MaxRow: n})) },
		"CSV.Limit":               func(n int) error { return second(ReadCSV(strings.NewReader("a\n1\n"), CSV{Limit: int64(n)})) },
		"StreamCSV":               func(n int) error { return first(StreamCSV(t.TempDir()+"/none", CSV{}, n)) },
		"NewArray":                func(n int) error { return Array{[]bool{}, []int{n, 0}}.Check() },
	}
	calls, refused := 0, 0
	for name, call := range rows {
		for _, n := range []int{math.MinInt, -1, 0, 1, imageSide, math.MaxInt - 4096, math.MaxInt - 1, math.MaxInt} {
			var err error
			took := allocated(func() { require.NotPanics(t, func() { err = call(n) }, "%s of %d", name, n) })
			require.Less(t, took, uint64(64<<20), "%s of %d", name, n)
			if calls++; err != nil {
				require.NotContains(t, err.Error(), "panic: ", "%s of %d", name, n)
				refused++
			}
			if n < 0 && !strings.Contains(name, "Size") { // a negative Size counts for nothing
				require.Error(t, err, "%s of %d", name, n)
			}
		}
	}
	t.Logf("%d numbers that say a size or limit, %d calls, %d refused", len(rows), calls, refused)
}

// first takes one item of a sequence.
func first[B any](s iter.Seq2[B, error]) error {
	for _, err := range s {
		return err
	}
	return nil
}

func augmented(a Array, change Augmentation) error {
	_, err := Augment(1, "x", change)(Batch{Fields: []Field{{"x", a}}, Size: a.Len()})
	return err
}

// A file of a spreadsheet begins with a byte order mark, and may quote its header.
func TestR29_csvWithAByteOrderMark(t *testing.T) {
	for _, file := range []string{"a,b\n1,2\n", "\ufeffa,b\n1,2\n", "\ufeff\"a\",\"b\"\n1,2\n", "\ufeff\"a\",b\r\n\"1\",2\r\n"} {
		set, err := ReadCSV(strings.NewReader(file), CSV{Fields: []CSVField{{Name: "x", Columns: []string{"a", "b"}}}})
		require.NoError(t, err, fmt.Sprintf("%q", file))
		require.Equal(t, []float32{1, 2}, set.Fields()[0].Array.Flat)
	}
	set, err := ReadCSV(strings.NewReader("\ufeff\"1\",2\n"), CSV{NoHeader: true})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2}, set.Fields()[0].Array.Flat)
}
