package data_test

import (
	"fmt"
	"iter"
	"log"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/data/tables"
)

func of(items ...int) iter.Seq2[int, error] { return (&source{items: items}).all }

func double(n int) (int, error) { return 2 * n, nil }

func odd(n int) (int, error) {
	if n%2 == 0 {
		return 0, errBroken
	}
	return n, nil
}

func add(a, b int) (int, error) { return a + b, nil }

func TestCompose(t *testing.T) {
	for _, row := range []struct {
		name string
		of   iter.Seq2[int, error]
		want got
	}{
		{"map", data.Map(of(1, 2, 3), double), got{2, 4, 6}},
		{"map of nothing", data.Map(of(), double), nil},
		{"map passes errors on in their place", data.Map(of(1, -1, 3), double), got{2, -1, 6}},
		{"an error of the function stands in its batch's place", data.Map(of(1, 2, 3), odd), got{1, -1, 3}},
		{"filter", data.Filter(of(1, 2, 3, -1, 4), func(n int) bool { return n%2 == 0 }), got{2, -1, 4}},
		{"filter keeps none", data.Filter(of(1, 2), func(int) bool { return false }), nil},
		{"zip", data.Zip(of(1, 2), of(10, 20), add), got{11, 22}},
		{"zip ends with the first", data.Zip(of(1), of(10, 20), add), got{11}},
		{"zip ends with the second", data.Zip(of(1, 2), of(10), add), got{11}},
		{"zip with errors", data.Zip(of(1, -1, 3, -1), of(10, 20, -1, -1), add), got{11, -1, -1, -1}},
		{"interleave", data.Interleave(1, of(1, 2, 3), of(4), of(5, 6)), got{1, 4, 5, 2, 6, 3}},
		{"interleave in runs", data.Interleave(2, of(1, 2, 3), of(4, -1, 5), of()), got{1, 2, 4, -1, 3, 5}},
		{"interleave nothing", data.Interleave[int](1), nil},
		{"cache", data.Cache(of(1, 2)), got{1, 2}},
		{"cache with an error", data.Cache(of(1, -1)), got{1, -1}},
		{"shard", data.Shard(of(0, 1, 2, 3, 4, 5, 6), 1, 3), got{1, 4}},
		{"shard with an error", data.Shard(of(0, -1, 1, 2, 3), 0, 2), got{-1, 0, 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, list(t, row.of, -1))
			require.Equal(t, row.want, list(t, row.of, -1), "it can be iterated again")
			for n := 1; n < len(row.want); n++ {
				require.Equal(t, row.want[:n], list(t, row.of, n), "a consumer that stops")
			}
		})
	}
}

func TestF37_compositionsThatMakeNoSense(t *testing.T) {
	length := func(n int) int { return n }
	items := func(b data.Bucket[int]) (int, error) { return len(b.Items), nil }
	cases := map[string]iter.Seq2[int, error]{
		"data: map: there is no source (nil)":                                                                data.Map[int, int](nil, double),
		"data: map: there is no function (nil)":                                                              data.Map[int, int](of(1), nil),
		"data: filter: there is no source (nil)":                                                             data.Filter[int](nil, nil),
		"data: zip: there is no source (nil)":                                                                data.Zip(of(1), nil, add),
		"data: interleave runs of 0: expected at least 1":                                                    data.Interleave(0, of(1)),
		"data: interleave: source 2 of 2: there is no source (nil)":                                          data.Interleave(1, of(1), nil),
		"data: prefetch: there is no source (nil)":                                                           data.Prefetch[int](nil, 1),
		"data: cache: there is no source (nil)":                                                              data.Cache[int](nil),
		"data: parallel map with 0 workers: expected 1 to 65536":                                             data.ParallelMap(of(1), 0, double),
		"data: parallel map: there is no function (nil)":                                                     data.ParallelMap[int, int](of(1), 1, nil),
		"data: shuffle by a buffer of 0: expected at least 1":                                                data.ShuffleBuffer(of(1), 0, 1),
		"data: shuffle by a buffer: there is no source (nil)":                                                data.ShuffleBuffer[int](nil, 1, 1),
		"data: buckets: there is no source (nil)":                                                            data.Map(data.Buckets(nil, 1, data.Kept, length, 1), items),
		"data: buckets: there is no function (nil)":                                                          data.Map(data.Buckets(of(1), 1, data.Kept, nil, 1), items),
		"data: buckets of 0 items: expected at least 1":                                                      data.Map(data.Buckets(of(1), 0, data.Kept, length, 1), items),
		"data: buckets: the policy for the remainder is padded, expected data.Dropped or data.Kept":          data.Map(data.Buckets(of(1), 1, data.Padded, length, 1), items),
		"data: buckets of the lengths []: expected one or more, of at least 1":                               data.Map(data.Buckets(of(1), 1, data.Kept, length), items),
		"data: buckets of the lengths [0 4]: expected one or more, of at least 1":                            data.Map(data.Buckets(of(1), 1, data.Kept, length, 4, 0), items),
		"data: shard: there is no source (nil)":                                                              data.Shard[int](nil, 0, 1),
		"data: shard 2 of 2: expected at least 1 shard, and an index from 0 to the number of shards minus 1": data.Shard(of(1), 2, 2),
	}
	for want, s := range cases {
		var errs []error
		for _, err := range s {
			errs = append(errs, err)
		}
		require.Len(t, errs, 1, want)
		require.EqualError(t, errs[0], want)
	}
	t.Logf("F37: %d compositions that make no sense: one error each", len(cases))
}

func TestLaws_compose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := got(rapid.SliceOfN(rapid.IntRange(-1, 9), 0, 20).Draw(t, "items"))
		most := rapid.IntRange(1, 25).Draw(t, "most")
		s := &source{items: items}
		square := func(n int) (int, error) { return n * n, nil }
		both := func(n int) (int, error) { return 4 * n * n, nil }
		require.Equal(t, list(t, data.Map(s.all, both), most), list(t, data.Map(data.Map(s.all, double), square), most), "map of map is the map of both")
		require.Equal(t, list(t, data.Map(s.all, odd), most), list(t, data.ParallelMap(s.all, rapid.IntRange(1, 5).Draw(t, "workers"), odd), most), "parallel or not")
		require.Equal(t, list(t, s.all, most), list(t, data.Interleave(rapid.IntRange(1, 4).Draw(t, "run"), s.all), most), "interleave of one")
		chunks := 0
		n := rapid.IntRange(1, 6).Draw(t, "chunk")
		var flat got
		for c, err := range data.Chunk(data.Filter(s.all, func(int) bool { return true }), n, data.Kept) {
			if err == nil {
				flat, chunks = append(flat, c...), chunks+1
			}
		}
		whole := slices.DeleteFunc(slices.Clone(items), func(n int) bool { return n < 0 })
		require.Equal(t, append(got{}, whole...), append(got{}, flat...), "chunks laid end to end are the whole")
		require.Equal(t, (len(whole)+n-1)/n, chunks)
		require.Equal(t, s.begun, s.ended, "whatever began has ended")
	})
}

func TestB106_peekConsumesNothing(t *testing.T) {
	for name, s := range map[string]iter.Seq2[int, error]{"plain": of(7, 8), "ahead": data.Prefetch(of(7, 8), 2), "parallel": data.ParallelMap(of(7, 8), 2, add1)} {
		want := list(t, s, -1)
		for range 2 {
			first, err := data.Peek(s)
			require.NoError(t, err, name)
			require.Equal(t, want[0], first, name)
		}
		require.Equal(t, want, list(t, s, -1), name)
	}
	t.Log("B106, B80: 6 peeks, 0 elements lost")
}

func add1(n int) (int, error) { return n + 1, nil }

func TestB80_anEmptySourceIsAnErrorOfPeek(t *testing.T) {
	require.Equal(t, got{1, 2, 3}, list(t, data.Map(of(1, 2, 3), func(n int) (int, error) { return n, nil }), -1), "passed through, then the end")
	_, err := data.Peek(of())
	require.EqualError(t, err, "data: peek: the source is empty")
	_, err = data.Peek[int](nil)
	require.EqualError(t, err, "data: peek: there is no source (nil)")
	_, err = data.Peek(of(-1))
	require.ErrorIs(t, err, errBroken)
}

func TestB82_tokensOfSeveralLengths(t *testing.T) {
	lines := [][]int32{{1, 2, 3}, {4, 5}, {6, 7, 8, 9}, {10}}
	all := func(yield func([]int32, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
	collate := func(lines [][]int32) (data.Batch, error) {
		x, mask, err := data.PadSequences(lines, 0)
		if err != nil {
			return data.Batch{}, err
		}
		y, _, err := data.PadSequences(lines, -100)
		return data.Batch{Size: len(lines), Fields: []data.Field{{Name: "x", Array: x}, {Name: "mask", Array: mask}, {Name: "y", Array: y}}}, err
	}
	batches := func(n int) (all2 []data.Batch) {
		for b, err := range data.Map(data.Chunk(all, n, data.Kept), collate) {
			require.NoError(t, err)
			all2 = append(all2, b)
		}
		return all2
	}
	two := batches(2)
	require.Len(t, two, 2)
	get := func(b data.Batch, name string) data.Array {
		a, err := b.Field(name)
		require.NoError(t, err)
		return a
	}
	require.Equal(t, data.Array{Flat: []int32{1, 2, 3, 4, 5, 0}, Dims: []int{2, 3}}, get(two[0], "x"))
	require.Equal(t, data.Array{Flat: []bool{true, true, true, true, true, false}, Dims: []int{2, 3}}, get(two[0], "mask"))
	require.Equal(t, data.Array{Flat: []int32{1, 2, 3, 4, 5, -100}, Dims: []int{2, 3}}, get(two[0], "y"))
	require.Equal(t, data.Array{Flat: []int32{6, 7, 8, 9, 10, -100, -100, -100}, Dims: []int{2, 4}}, get(two[1], "y"))
	var sizes []int
	for _, b := range batches(3) {
		sizes = append(sizes, b.Samples())
	}
	require.Equal(t, []int{3, 1}, sizes)
	lines = nil
	require.Empty(t, batches(2), "an empty source ends at once")
	_, _, err := data.PadSequences([][]int32{{}, {}}, 0)
	require.EqualError(t, err, "data: pad 2 sequences, the longest of 0 items, to 0: expected at least one item, and at most 17179869184 in all")
}

func ExampleMap() {
	train, _, err := data.Digits()
	if err != nil {
		log.Fatal(err)
	}
	x, err := train.Slice(0, 1000)
	if err != nil {
		log.Fatal(err)
	}
	scaling, err := tables.FitScaling(x.Fields()[0].Array)
	if err != nil {
		log.Fatal(err)
	}
	scaled := data.Map(train.Batches(128, data.Shuffle(1)).All(), data.OnField("x", scaling.Apply))
	flipped := data.ParallelMap(scaled, 2, images.Augment(1, "x", images.RandomCrop(8, 8, 1)))
	n := 0
	for _, err := range flipped {
		if err != nil {
			log.Fatal(err)
		}
		n++
	}
	fmt.Println(n, "batches")
	// Output: 11 batches
}
