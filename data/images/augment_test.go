package images

import (
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

func pictures(t require.TestingT, n, h, w int) data.Batch {
	x := make([]float32, n*h*w*2)
	for i := range x {
		x[i] = float32(i + 1)
	}
	s, err := data.New(data.X(x, n, h, w, 2))
	require.NoError(t, err)
	return data.Batch{Fields: s.Fields(), Size: n}
}

// What each change may give, of an image of one row 1 2 3.
func TestAugmentations(t *testing.T) {
	for _, row := range []struct {
		name   string
		change Augmentation
		h, w   int
		want   [][]uint8
	}{
		{"flip horizontal", FlipHorizontal(), 1, 3, [][]uint8{{1, 2, 3}, {3, 2, 1}}},
		{"flip vertical", FlipVertical(), 3, 1, [][]uint8{{1, 2, 3}, {3, 2, 1}}},
		{"flip vertical of a row", FlipVertical(), 1, 3, [][]uint8{{1, 2, 3}}},
		{"crop", RandomCrop(1, 2, 0), 1, 3, [][]uint8{{1, 2}, {2, 3}}},
		{"crop with padding", RandomCrop(3, 5, 1), 1, 3, [][]uint8{{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0}}},
		{"crop to the size", RandomCrop(1, 3, 1), 1, 3, [][]uint8{{0, 0, 0}, {0, 1, 2}, {1, 2, 3}, {2, 3, 0}}},
		{"shift", RandomShift(0, 1), 1, 3, [][]uint8{{1, 1, 2}, {1, 2, 3}, {2, 3, 3}}},
		{"no shift", RandomShift(0, 0), 1, 3, [][]uint8{{1, 2, 3}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := data.Batch{Size: 1, Fields: []data.Field{data.X([]uint8{1, 2, 3}, 1, row.h, row.w, 1)}}
			seen := map[string]bool{}
			for at := range 200 {
				b.At = at
				got, err := Augment(1, "x", row.change)(b)
				require.NoError(t, err)
				require.NoError(t, got.Fields[0].Array.Check())
				flat := got.Fields[0].Array.Flat.([]uint8)
				require.Contains(t, row.want, flat)
				seen[string(flat)] = true
			}
			require.Len(t, seen, len(row.want), "each of them comes")
			require.Equal(t, []uint8{1, 2, 3}, b.Fields[0].Array.Flat, "the batch stays as it is")
		})
	}
}

// The draw of an example depends on the seed, the epoch and its place, not on the batch it came in.
func TestAugment_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, h, w := rapid.IntRange(1, 6).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "h"), rapid.IntRange(1, 5).Draw(t, "w")
		b := pictures(t, n, h, w)
		b.Epoch, b.At = rapid.IntRange(0, 3).Draw(t, "epoch"), rapid.IntRange(0, 100).Draw(t, "at")
		f := Augment(rapid.Uint64().Draw(t, "seed"), "x", FlipVertical(), RandomCrop(h+1, w, 1), RandomShift(1, 1), FlipHorizontal())
		whole, err := f(b)
		require.NoError(t, err)
		require.Equal(t, []int{n, h + 1, w, 2}, whole.Fields[0].Array.Dims)
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		for i, from := range []int{0, cut} {
			part, err := b.Slice(from, []int{cut, n}[i])
			require.NoError(t, err)
			got, err := f(part)
			require.NoError(t, err)
			want := whole.Fields[0].Array.Slice([]int{0, cut}[i], []int{cut, n}[i])
			require.Equal(t, want.Dims, got.Fields[0].Array.Dims)
			require.ElementsMatch(t, want.Flat, got.Fields[0].Array.Flat)
			require.Equal(t, want, got.Fields[0].Array)
		}
		values := whole.Fields[0].Array.Flat.([]float32)
		for i := 0; i < len(values); i += 2 { // channels stay together
			require.True(t, values[i] == 0 && values[i+1] == 0 || values[i+1] == values[i]+1 && int(values[i])%2 == 1)
		}
	})
	same := 0
	a := pictures(t, 64, 4, 4)
	f := Augment(1, "x", FlipHorizontal())
	one, err := f(a)
	require.NoError(t, err)
	a.Epoch = 1
	two, err := f(a)
	require.NoError(t, err)
	x, y := one.Fields[0].Array.Flat.([]float32), two.Fields[0].Array.Flat.([]float32)
	for i := range 64 {
		if x[i*32] == y[i*32] {
			same++
		}
	}
	require.InDelta(t, 32, same, 20, "another epoch draws anew")
}

func TestAugmentRefuses(t *testing.T) {
	b := pictures(t, 2, 3, 4)
	for want, f := range map[string]func(data.Batch) (data.Batch, error){
		`images: augment: the batch has no field "z"; there are ["x"]`:                                      Augment(1, "z"),
		`field "x": random crop: 5 x 1 pixels out of an image of 3 x 4 with a border of 0: expected`:        Augment(1, "x", RandomCrop(5, 1, 0)),
		`field "x": random crop: 0 x 1 pixels`:                                                              Augment(1, "x", RandomCrop(0, 1, 0)),
		`random crop: 1 x 1 pixels out of an image of 3 x 4 with a border of 9223372036854775807: expected`: Augment(1, "x", RandomCrop(1, 1, 1<<63-1)),
		`field "x": random shift: shifts of up to 4 rows and 0 columns in an image of 3 x 4`:                Augment(1, "x", RandomShift(4, 0)),
		"the Augmentation is the zero value":                                                                Augment(1, "x", Augmentation{}),
	} {
		_, err := f(b)
		require.ErrorContains(t, err, want)
	}
	_, err := Augment(1, "x")(data.Batch{Fields: []data.Field{data.X([]float32{1}, 1)}, Size: 1})
	require.ErrorContains(t, err, `field "x": dims [1], expected images [n, height, width, channels]`)
}

// No two batches get the same draws, whatever repeats, divides or makes them. A resumed run has those of the whole run.
func TestAugment_drawsAnewForEachBatch(t *testing.T) {
	images := data.Named("x", make([]float32, 8*64), 8, 1, 64, 1)
	for i := range images.Array.Flat.([]float32) {
		images.Array.Flat.([]float32)[i] = float32(i % 64)
	}
	set, err := data.New(images)
	require.NoError(t, err)
	stream := set.Batches(2)
	hand := func(yield func(data.Batch, error) bool) {
		for yield(data.Batch{Fields: []data.Field{images}, Size: 8}, nil) {
		}
	}
	change := Augment(3, "x", RandomCrop(1, 64, 1<<14)) // of a draw in 2^15
	draws := func(batches iter.Seq2[data.Batch, error], n int64) (all [][2]int) {
		for b, err := range data.Take(batches, n) {
			require.NoError(t, err)
			all = append(all, [2]int{b.Epoch, b.At})
		}
		return all
	}
	require.Equal(t, draws(data.Map(set.Batches(2).From(0), change), 17)[5:], draws(data.Map(set.Batches(2).From(5), change), 12))
	for name, source := range map[string]iter.Seq2[data.Batch, error]{
		"forever":        set.Batches(2).From(0),
		"repeated":       data.Repeat(stream.All(), 5),
		"for all time":   data.Repeat(stream.All(), math.MaxInt),
		"epochs":         data.Repeat(data.Take(set.Batches(2, data.Shuffle(1)).From(0), 8), math.MaxInt),
		"by hand":        hand,
		"ended by hand":  data.Repeat(data.Take(hand, 3), math.MaxInt),
		"passes":         data.Passes(func(pass int) iter.Seq2[data.Batch, error] { return data.ShuffleBuffer(stream.All(), 3, uint64(pass)) }),
		"buffer":         data.ShuffleBuffer(data.Repeat(stream.All(), math.MaxInt), 3, 1),
		"rebatched":      data.Repeat(data.Rebatch(stream.All(), 3, data.Kept), math.MaxInt),
		"rebatch":        data.Rebatch(data.Repeat(stream.All(), math.MaxInt), 3, data.Kept),
		"rebatched hand": data.Rebatch(hand, 3, data.Kept),
		"window of hand": data.Prefetch(data.Filter(hand, func(data.Batch) bool { return true }), 2),
	} {
		t.Run(name, func(t *testing.T) {
			whole := draws(data.Map(source, change), 17)
			seen := map[[2]int]bool{}
			for _, at := range whole {
				require.False(t, seen[at], "%v: the place %v comes twice", whole, at)
				seen[at] = true
			}
			require.Equal(t, whole, draws(data.ParallelMap(source, 3, change), 17))
			resumed := loop.Data[data.Batch](data.ParallelMap(source, 2, change)).From(5)
			require.Equal(t, whole[5:], draws(resumed, int64(len(whole)-5)))
		})
	}
	flipped := func(source iter.Seq2[data.Batch, error]) (all []string) {
		for b, err := range data.Take(data.Map(source, Augment(3, "x", FlipHorizontal())), 4) {
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
	require.Len(t, flipped(data.Repeat(set.Batches(8).All(), math.MaxInt)), 4)
}

// F10 for data: a run resumed after n steps with a pipeline from position n of the set, or one that skips through the
// whole pipeline. Both yield bit-identical batches to the uninterrupted run.
func TestF10_resumeIsTheUnbrokenPipeline(t *testing.T) {
	x := make([]uint8, 23*5*5)
	for i := range x {
		x[i] = uint8(i * 7)
	}
	s, err := data.New(data.Named("x", x, 23, 5, 5, 1))
	require.NoError(t, err)
	batches := s.Batches(4, data.Shuffle(3), data.Kept)
	pipeline := func(workers int, position int64) iter.Seq2[data.Batch, error] {
		return data.Prefetch(data.ParallelMap(data.Take(batches.From(position), 18-position), workers, Augment(9, "x", FlipHorizontal(), RandomCrop(5, 5, 2), RandomShift(1, 2))), 2)
	}
	var whole []data.Batch
	for b, err := range pipeline(1, 0) {
		require.NoError(t, err)
		whole = append(whole, b)
	}
	require.Len(t, whole, 18)
	places := 0
	for n := range whole {
		var positioned, skipped []data.Batch
		for b, err := range pipeline(1+n%4, int64(n)) {
			require.NoError(t, err)
			positioned = append(positioned, b)
		}
		for b, err := range loop.Data[data.Batch](pipeline(2, 0)).From(int64(n)) {
			require.NoError(t, err)
			skipped = append(skipped, b)
		}
		require.Equal(t, whole[n:], positioned)
		require.Equal(t, whole[n:], skipped)
		places++
	}
	t.Logf("F10: resumed at %d places with 1 to 4 workers, by a position of the set and by skipping through: 0 bytes differ", places)
}
