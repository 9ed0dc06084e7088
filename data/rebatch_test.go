package data

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Cutting into pieces of any sizes and putting together again is dealing out in the right size: drop, keep, and pad.
func TestRebatch_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		s := numbered(t, n)
		size := rapid.IntRange(1, n).Draw(t, "size")
		pieces := rapid.IntRange(1, 12).Draw(t, "pieces")
		epochs := rapid.Int64Range(1, 3).Draw(t, "epochs")
		var opts []Option
		if rapid.Bool().Draw(t, "shuffle") {
			opts = append(opts, Shuffle(1))
		}
		source := s.Batches(pieces, append(slices.Clone(opts), Kept)...)

		same := func(rest Remainder, opts []Option, change func(Batch) (Batch, error)) {
			var want, got []Batch
			for b, err := range Map(s.Batches(size, opts...).sequence(0, epochs), change) {
				require.NoError(t, err)
				b.end, b.left = epochUnknown, 0 // what Rebatch drops, its caller has chosen
				want = append(want, b.alone())
			}
			for b, err := range Rebatch(source.sequence(0, epochs), size, rest) {
				require.NoError(t, err)
				got = append(got, b.alone())
			}
			require.Equal(t, want, got)
		}
		asIs := func(b Batch) (Batch, error) { return b, nil }
		same(Dropped, opts, asIs)
		keep := append(slices.Clone(opts), Kept)
		same(Kept, keep, asIs)
		same(Padded, keep, func(b Batch) (Batch, error) { return Pad(b, size) })
	})
}

func TestF32_rebatchLosesNoExample(t *testing.T) {
	cases := 0
	for n := 1; n <= 33; n++ {
		for _, size := range []int{1, 2, 4, 8} {
			var seen []int
			for b, err := range Rebatch(numbered(t, n).Batches(1).All(), size, Padded) {
				require.NoError(t, err)
				mask := b.Fields[2].Array.Flat.([]bool)
				require.Len(t, mask, size)
				for i, e := range numbers(t, b.Fields[:2]) {
					if mask[i] {
						seen = append(seen, e)
					}
				}
			}
			require.Equal(t, count(n), seen)
			cases++
		}
	}
	t.Logf("F32: %d sizes of set and batch: 0 examples lost or doubled", cases)
}

func TestB81_checkedBatches(t *testing.T) {
	first := Batch{Size: 2, Fields: []Field{X([]float32{1, 2}, 2, 1), Y([]int32{1, 2}, 2)}}
	for name, row := range map[string]struct {
		second Batch
		want   string
	}{
		"the same":        {first, ""},
		"fewer examples":  {Batch{Size: 1, Fields: []Field{X([]float32{1}, 1, 1), Y([]int32{1}, 1)}}, ""},
		"a missing field": {Batch{Size: 2, Fields: first.Fields[:1]}, `a batch has the fields ["x"], those before it have ["x" "y"]`},
		"too few":         {Batch{Size: 2, Fields: []Field{X([]float32{1, 2}[:1], 2, 1), first.Fields[1]}}, `field "x": dims [2 1] mean 2 elements, but Flat has 1`},
		"another field":   {Batch{Size: 2, Fields: []Field{first.Fields[0], Named("z", []int32{1, 2}, 2)}}, `a batch has the fields ["x" "z"], those before it have ["x" "y"]`},
		"another shape":   {Batch{Size: 1, Fields: []Field{X([]float32{1, 2}, 1, 2), Y([]int32{1}, 1)}}, `field "x" of a batch is float32 [1 2], of those before it float32 [2 1]`},
		"another rank":    {Batch{Size: 2, Fields: []Field{X([]float32{1, 2}, 2), first.Fields[1]}}, `field "x" of a batch is float32 [2], of those before it float32 [2 1]`},
		"another type":    {Batch{Size: 2, Fields: []Field{first.Fields[0], Y([]int64{1, 2}, 2)}}, `field "y" of a batch is int64 [2], of those before it int32 [2]`},
	} {
		source := func(yield func(Batch, error) bool) {
			_ = yield(first, nil) && yield(row.second, nil) && yield(first, nil)
		}
		var errs []error
		n := 0
		for b, err := range Checked(source) {
			n++
			if err != nil {
				errs = append(errs, err)
				require.Zero(t, b)
			}
		}
		require.Equal(t, 3, n, "without stopping: a caller may go on")
		_, err := lastOf(Rebatch(source, 4, Kept))
		if row.want == "" {
			require.Empty(t, errs, name)
			require.NoError(t, err, name)
			continue
		}
		require.Len(t, errs, 1, name)
		require.ErrorContains(t, errs[0], "data: batch 2: "+row.want, name)
		require.ErrorContains(t, err, "data: rebatch: "+row.want, name)
	}
}

func lastOf(s func(func(Batch, error) bool)) (b Batch, err error) {
	for b, err = range s {
	}
	return b, err
}

func TestRebatchRefuses(t *testing.T) {
	s := numbered(t, 3)
	one := func(b Batch) func(func(Batch, error) bool) {
		return func(yield func(Batch, error) bool) { yield(b, nil) }
	}
	for want, source := range map[string]func(func(Batch, error) bool){
		"data: rebatch to 0 examples: expected at least 1":                                                       Rebatch(s.Batches(1).All(), 0, Kept),
		"data: rebatch: there is no source (nil)":                                                                Rebatch(nil, 1, Kept),
		"data: rebatch: the remainder's policy is Remainder(7), expected data.Dropped, data.Kept or data.Padded": Rebatch(s.Batches(1).All(), 1, 7),
		`data: rebatch: field "x" has dims [2], expected 3 examples on the first axis`:                           Rebatch(one(Batch{Size: 3, Fields: []Field{X([]float32{1, 2}, 2)}}), 2, Kept),
		`data: rebatch: field "x": the array has no elements (Flat is nil)`:                                      Rebatch(one(Batch{Size: 3, Fields: []Field{X(nil, 3)}}), 2, Kept),
		"data: checked: there is no source (nil)":                                                                Checked(nil),
	} {
		_, err := lastOf(source)
		require.EqualError(t, err, want)
	}
	failed := errors.New("failed")
	var got []string
	for b, err := range Rebatch(func(yield func(Batch, error) bool) {
		_ = yield(numberedBatch(t, 0), nil) && yield(Batch{}, failed) && yield(numberedBatch(t, 1), nil)
	}, 2, Kept) {
		if err != nil {
			got = append(got, err.Error())
		} else {
			got = append(got, "batch")
		}
		require.LessOrEqual(t, b.Size, 2)
	}
	require.Equal(t, []string{"failed", "batch"}, got, "an error does not wait, and the examples are not lost")
}

func numberedBatch(t *testing.T, i int) Batch {
	part, err := numbered(t, 5).Slice(i, i+1)
	require.NoError(t, err)
	return Batch{Fields: part.Fields(), Size: 1, At: i}
}

func TestShardSet_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "size")
		n := rapid.IntRange(1, 8).Draw(t, "shards")
		rest := Remainder(rapid.IntRange(0, 2).Draw(t, "rest"))
		s := numbered(t, size)
		var union []int
		lengths := map[int]bool{}
		for k := range n {
			part, err := s.Shard(k, n, rest)
			if err != nil {
				require.Less(t, size, n, "only where there are too few examples")
				require.NotEqual(t, Padded, rest)
				lengths[0] = true
				continue
			}
			lengths[part.Len()] = true
			all := numbers(t, part.Fields()[:2])
			if rest == Padded {
				mask := part.Fields()[2].Array.Flat.([]bool)
				kept := all[:0]
				for i, e := range all {
					if mask[i] {
						kept = append(kept, e)
					}
				}
				all = kept
			}
			union = append(union, all...)
		}
		want := count(size)
		if rest == Dropped {
			want = want[:size-size%n]
		}
		require.Equal(t, append([]int{}, want...), append([]int{}, union...), "the shards are the whole")
		if rest != Kept {
			require.Len(t, lengths, 1, "equal lengths")
		} else {
			require.LessOrEqual(t, len(lengths), 2)
		}
	})
}
