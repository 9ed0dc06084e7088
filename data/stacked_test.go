package data

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// After any changes, batches that are taken as contiguous have their own elements there.
func TestStacked_law(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		s := numbered(t, rapid.IntRange(1, 40).Draw(t, "n"))
		size, k := rapid.IntRange(1, s.Len()).Draw(t, "size"), rapid.IntRange(1, 6).Draw(t, "k")
		options := []Option{Kept}
		if rapid.Bool().Draw(t, "shuffle") {
			options = append(options, Shuffle(1))
		}
		var batches []Batch
		for b, err := range s.Batches(size, options...).sequence(0, 2) {
			require.NoError(t, err)
			switch rapid.IntRange(0, 12).Draw(t, "change") {
			case 0:
				other := slices.Clone(b.Fields[1].Array.Flat.([]int32))
				other[0] += 100
				b.Fields[1].Array.Flat = other
			case 1:
				b.Fields[0], b.Fields[1] = b.Fields[1], b.Fields[0]
			case 2:
				b.Fields = b.Fields[:1]
			case 3:
				continue
			case 4:
				if i := rapid.IntRange(0, b.Size-1).Draw(t, "from"); i > 0 {
					b, err = b.Slice(i, b.Size)
					require.NoError(t, err)
				}
			}
			batches = append(batches, b)
		}
		for len(batches) > 0 {
			n := min(len(batches), rapid.IntRange(1, k).Draw(t, "together"))
			block := batches[:n]
			batches = batches[n:]
			all, ok := Stacked(nil, block, k)
			if !ok {
				continue
			}
			found++
			require.Len(t, all, len(block[0].Fields))
			for f, flat := range all {
				kind, n := arrays.Of(flat), block[0].Fields[f].Array.Size()
				require.Equal(t, k*n, kind.Len(flat))
				for i, b := range block {
					require.Equal(t, b.Fields[f].Array.Flat, kind.Slice(flat, i*n, (i+1)*n))
				}
			}
		}
	})
	if !testing.Short() { // which draws a fifth, where a few large batches may be all
		require.Greater(t, found, 50)
	}
	t.Logf("%d blocks lay together", found)
}

func TestStacked_saysNoOfWhatLiesApart(t *testing.T) {
	for name, batches := range map[string][]Batch{
		"none": nil, "one by hand": {{Fields: []Field{X([]float32{1}, 1)}}}, "too many": {{}, {}}, "an empty one": {{}},
	} {
		_, ok := Stacked(nil, batches, 1)
		require.False(t, ok, name)
	}
}

func TestStacked_shuffledBatchesCostNoMoreAllocations(t *testing.T) {
	s, err := New(X(make([]float32, 512*4), 512, 4), Y(make([]int32, 512), 512))
	require.NoError(t, err)
	iterate := func(batches int) float64 {
		return testing.AllocsPerRun(5, func() {
			left := batches
			for range s.Batches(8, Shuffle(1)).From(0) {
				if left--; left == 0 {
					break
				}
			}
		})
	}
	perBatch := (iterate(1100) - iterate(100)) / 1000
	t.Logf("%.2f allocations a batch", perBatch)
	require.Less(t, perBatch, 3.1, "the fields, for each of two the header of its slice, and the memory of a hundred")
}

// A function that changes its batch in place must not change the set: a researcher's normalization was applied again in
// each epoch.
func TestMap_ofAFunctionThatWritesInPlace(t *testing.T) {
	double := func(b Batch) (Batch, error) {
		x := b.Fields[0].Array.Flat.([]float32)
		for i := range x {
			x[i] *= 2
		}
		return b, nil
	}
	for name, through := range map[string]func(iter.Seq2[Batch, error]) iter.Seq2[Batch, error]{
		"Map":         func(s iter.Seq2[Batch, error]) iter.Seq2[Batch, error] { return Map(s, double) },
		"ParallelMap": func(s iter.Seq2[Batch, error]) iter.Seq2[Batch, error] { return ParallelMap(s, 2, double) },
		"Zip": func(s iter.Seq2[Batch, error]) iter.Seq2[Batch, error] {
			return Zip(s, s, func(_, b Batch) (Batch, error) { return double(b) })
		},
	} {
		for _, opts := range [][]Option{{Kept}, {Kept, Share(0, 1)}, {Kept, Shuffle(1)}} {
			set, err := New(X([]float32{1, 2, 3, 4, 5}, 5))
			require.NoError(t, err)
			for range 2 {
				sum := float32(0)
				for b, err := range through(set.Batches(2, opts...).All()) {
					require.NoError(t, err)
					for _, x := range b.Fields[0].Array.Flat.([]float32) {
						sum += x
					}
				}
				require.EqualValues(t, 30, sum, name)
			}
			require.Equal(t, []float32{1, 2, 3, 4, 5}, set.Fields()[0].Array.Flat, name)
		}
	}

	set, err := New(X([]float32{1, 2, 3, 4, 5}, 5))
	require.NoError(t, err)
	_, err = set.Map(Rename("x", "y"), double)
	require.EqualError(t, err, "data: map a set: change 2 of 2 has written into the arrays of the set, which is spoiled: it must return new arrays")
}
