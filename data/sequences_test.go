package data_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// groups are buckets as they come, their items' lengths being the items themselves; an error has no items.
func groups(t require.TestingT, s iter.Seq2[data.Bucket[int], error], most int) []data.Bucket[int] {
	all := []data.Bucket[int]{}
	for b, err := range s {
		if err != nil {
			require.Empty(t, b)
		}
		if all = append(all, b); len(all) == most {
			break
		}
	}
	return all
}

// Each item occurs once, in the smallest sufficient bucket, in the source's order; all buckets but the last ones are
// full; and a resumed run has the same ones.
func TestBuckets_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &source{items: rapid.SliceOfN(rapid.IntRange(-1, 12), 0, 60).Draw(t, "items")}
		lengths := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 4).Draw(t, "lengths")
		n := rapid.IntRange(1, 4).Draw(t, "n")
		rest := rapid.SampledFrom([]data.Remainder{data.Dropped, data.Kept}).Draw(t, "rest")
		buckets := data.Buckets(s.all, n, rest, func(n int) int { return n }, lengths...)

		whole, errs := groups(t, buckets, -1), 0
		given, short := map[int][]int{}, map[int]bool{}
		for _, b := range whole {
			if b.Items == nil {
				errs++
				continue
			}
			require.Contains(t, lengths, b.Length)
			require.False(t, short[b.Length], "a rest is the last of its bucket")
			short[b.Length] = len(b.Items) < n
			require.LessOrEqual(t, len(b.Items), n)
			given[b.Length] = append(given[b.Length], b.Items...)
		}
		want, wrong := map[int][]int{}, 0
		for _, item := range s.items {
			fits := slices.DeleteFunc(slices.Clone(lengths), func(l int) bool { return l < item })
			if item < 0 || len(fits) == 0 {
				wrong++
				continue
			}
			want[slices.Min(fits)] = append(want[slices.Min(fits)], item)
		}
		for l, items := range want {
			if rest == data.Dropped {
				items = items[:len(items)-len(items)%n]
				require.False(t, short[l])
			}
			require.Equal(t, items, append([]int{}, given[l]...))
		}
		require.Equal(t, wrong, errs, "errors of the source, and items that no bucket holds")

		at := rapid.IntRange(0, len(whole)).Draw(t, "at")
		if errs == 0 { // a run ends with an error
			require.Equal(t, whole[at:], groups(t, loop.Data[data.Bucket[int]](buckets).From(int64(at)), -1))
		}
		require.Equal(t, whole[:at], groups(t, data.Take(buckets, int64(at)), -1))
		require.Equal(t, s.begun, s.ended, "a consumer that stops reaches the source")
	})
}

// Shuffled in each pass, by a seed: items that wait in a bucket continue into the next pass, so that none is lost.
func TestBuckets_passes(t *testing.T) {
	lengths := make([]int, 50)
	for i := range lengths {
		lengths[i] = 1 + i*7%16
	}
	batches := func(seed uint64) []data.Bucket[int] {
		shuffled := data.Passes(func(pass int) iter.Seq2[int, error] {
			if pass == 4 {
				return nil
			}
			return data.ShuffleBuffer(data.Items(lengths), len(lengths), seed+uint64(pass))
		})
		return groups(t, data.Buckets(shuffled, 8, data.Dropped, func(n int) int { return n }, 4, 8, 16), -1)
	}
	all := batches(1)
	require.Equal(t, all, batches(1))
	require.NotEqual(t, all, batches(2))
	seen := 0
	for _, b := range all {
		require.Len(t, b.Items, 8)
		seen += len(b.Items)
	}
	require.Greater(t, seen, 4*len(lengths)-3*8)
}

func TestBuckets_tooLong(t *testing.T) {
	word := func(s string) int { return len(s) }
	var got []string
	for b, err := range data.Buckets(data.Items([]string{"a", "longer", "be"}), 2, data.Kept, word, 4, 2) {
		got = append(got, fmt.Sprint(b, err))
	}
	require.Equal(t, []string{
		"{[] 0} data: buckets: item 2 has the length 6, expected 0 to 4: truncate it, leave it out (data.Filter), " +
			"or give a larger length",
		"{[a be] 2} <nil>",
	}, got)
	for _, err := range data.Buckets(data.Items([]string{""}), 2, data.Kept, func(string) int { return -1 }, 4) {
		require.ErrorContains(t, err, "item 1 has the length -1, expected 0 to 4")
	}
}

func ExampleBuckets() {
	sentences := [][]int32{{1, 2, 3}, {4, 5, 6, 7, 8}, {9}, {1, 2, 3, 4, 5, 6}, {7, 8}}
	words := func(s []int32) int { return len(s) }
	buckets := data.Buckets(data.Items(sentences), 2, data.Kept, words, 3, 6)
	batches := data.Map(buckets, func(b data.Bucket[[]int32]) (data.Batch, error) {
		x, _, err := data.PadSequences(b.Items, 0, b.Length)
		return data.Batch{Fields: []data.Field{{Name: "x", Array: x}}, Size: len(b.Items)}, err
	})
	for batch, err := range batches {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch.Fields[0].Array.Dims, batch.Fields[0].Array.Flat)
	}
	// Output:
	// [2 3] [1 2 3 9 0 0]
	// [2 6] [4 5 6 7 8 0 1 2 3 4 5 6]
	// [1 3] [7 8 0]
}

// Each sequence is whole in one row, and two lists of the same lengths get the same places.
func TestPackSequences(t *testing.T) {
	values, numbers, err := data.PackSequences([][]int32{{1, 2, 3}, {4, 5}, {6, 7, 8, 9}, {10}, {11, 12}, {13}}, -1, 5)
	require.NoError(t, err)
	require.Equal(t, data.Array{Flat: []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, -1, -1}, Dims: []int{3, 5}}, values)
	require.Equal(t, data.Array{Flat: []int32{1, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1, 1, 2, 0, 0}, Dims: []int{3, 5}}, numbers)

	rng := rand.New(rand.NewPCG(1, 2))
	var lengths [17]int
	var some [][]float32
	var same [][]int64
	for i := range 200 {
		n := 1 + rng.IntN(16)
		lengths[n]++
		some, same = append(some, slices.Repeat([]float32{float32(i + 1)}, n)), append(same, slices.Repeat([]int64{int64(i + 1)}, n))
	}
	first, at, err := data.PackSequences(some, 0, 16)
	require.NoError(t, err)
	second, atToo, err := data.PackSequences(same, 0, 16)
	require.NoError(t, err)
	require.Equal(t, at, atToo)
	require.Less(t, first.Dims[0], 130, "rows of 200 sequences of 8.5 items on average")
	for i, x := range first.Flat.([]float32) {
		require.Equal(t, int64(x), second.Flat.([]int64)[i])
		require.Equal(t, x == 0, at.Flat.([]int32)[i] == 0)
		if i%16 > 0 && x != 0 { // a number for each sequence, counted in a row
			before := first.Flat.([]float32)[i-1]
			step := at.Flat.([]int32)[i] - at.Flat.([]int32)[i-1]
			require.Equal(t, map[bool]int32{true: 0, false: 1}[before == x], step)
			lengths[0] += map[bool]int{true: 0, false: 1}[before == x]
		} else if x != 0 {
			lengths[0]++
		}
	}
	require.Equal(t, 200, lengths[0])
	for want, err := range map[string]error{
		"data: pack 1 sequences into rows of 2: sequence 0 has 3 items, expected 1 to 2: truncate it, leave it out, or give a larger length": packed([][]int32{{1, 2, 3}}, 2),
		"data: pack 2 sequences into rows of 2: sequence 1 has 0 items, expected 1 to 2":                                                     packed([][]int32{{1}, nil}, 2),
		"data: pack 0 sequences into rows of 2: expected a length of at least 1, and at least one sequence":                                  packed(nil, 2),
		"data: pack 1 sequences into rows of 0: expected a length of at least 1":                                                             packed([][]int32{{1}}, 0),
	} {
		require.ErrorContains(t, err, want)
	}
}

func packed(sequences [][]int32, length int) error {
	_, _, err := data.PackSequences(sequences, 0, length)
	return err
}
