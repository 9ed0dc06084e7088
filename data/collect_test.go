package data_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

func counted(t require.TestingT, n int) *data.Set {
	x, y := make([]float32, 2*n), make([]int32, n)
	for i := range n {
		x[2*i], x[2*i+1], y[i] = float32(i), -float32(i), int32(i)
	}
	set, err := data.New(data.X(x, n, 2), data.Y(y, n))
	require.NoError(t, err)
	return set
}

func TestGatherAndWhere(t *testing.T) {
	set := counted(t, 5)
	some, err := set.Gather([]int{4, 0, 4})
	require.NoError(t, err)
	require.Equal(t, []data.Field{data.X([]float32{4, -4, 0, 0, 4, -4}, 3, 2), data.Y([]int32{4, 0, 4}, 3)}, some.Fields())
	for _, r := range []int{-1, 5} {
		_, err = set.Gather([]int{0, r})
		require.EqualError(t, err, fmt.Sprintf("data: gather example %d of a set of 5 examples", r))
	}
	odd, err := set.Where(func(b data.Batch) bool {
		y, err := b.Field("y")
		require.NoError(t, err)
		require.NoError(t, y.Check())
		require.Equal(t, int32(b.At), y.Flat.([]int32)[0])
		return b.At%2 == 1
	})
	require.NoError(t, err)
	require.Equal(t, []data.Field{data.X([]float32{1, -1, 3, -3}, 2, 2), data.Y([]int32{1, 3}, 2)}, odd.Fields())
	none, err := set.Where(func(data.Batch) bool { return false })
	require.NoError(t, err)
	require.Zero(t, none.Len())
	_, err = set.Where(nil)
	require.EqualError(t, err, "data: where: there is no function (nil)")
}

// Collect turns Batches back into the set, however it was cut, and owns its memory.
func TestCollect_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := counted(t, rapid.IntRange(1, 20).Draw(t, "examples"))
		size := rapid.IntRange(1, set.Len()).Draw(t, "size")
		back, err := data.Collect(set.Batches(size, data.Kept).All(), set.Len())
		require.NoError(t, err)
		require.Equal(t, set.Fields(), back.Fields())
		resident, err := data.Collect(data.OnDevice(set).Batches(size, data.Kept).All(), set.Len())
		require.NoError(t, err)
		require.Equal(t, set.Fields(), resident.Fields())
		back.Fields()[1].Array.Flat.([]int32)[0] = 77
		require.Equal(t, int32(0), set.Fields()[1].Array.Flat.([]int32)[0])
	})
}

func TestCollect_refuses(t *testing.T) {
	set := counted(t, 4)
	broken := errors.New("the disk is gone")
	for name, row := range map[string]struct {
		source iter.Seq2[data.Batch, error]
		limit  int
		err    string
	}{
		"no end":          {set.Batches(2).From(0), 7, "data: collect: more than 7 examples: over the limit; use a larger limit, or limit the source by data.Take"},
		"no limit":        {set.Batches(2).All(), 0, "data: collect at most 0 examples: expected at least 1"},
		"nil":             {nil, 1, "data: collect: there is no source (nil)"},
		"empty":           {data.Items[data.Batch](nil), 1, "data: collect: the source has no examples"},
		"an error":        {func(yield func(data.Batch, error) bool) { yield(data.Batch{}, broken) }, 1, "the disk is gone"},
		"unlike fields":   {data.Items([]data.Batch{{Size: 1, Fields: []data.Field{data.X([]int8{1}, 1)}}, {Size: 1, Fields: []data.Field{data.Y([]int8{1}, 1)}}}), 9, `data: collect: a batch has the fields ["y"], those before it have ["x"]`},
		"a damaged batch": {data.Items([]data.Batch{{Size: 1, Fields: []data.Field{data.X([]int8{1}, 2)}}}), 9, `data: collect: field "x": dims [2] mean 2 elements, but Flat has 1`},
	} {
		_, err := data.Collect(row.source, row.limit)
		require.EqualError(t, err, row.err, name)
	}
	_, err := data.Collect(set.Batches(2).From(0), 7)
	require.ErrorIs(t, err, data.ErrLimit)
}

func drawn(t require.TestingT, source iter.Seq2[int, error]) (all []int) {
	for n, err := range source {
		require.NoError(t, err)
		all = append(all, n)
	}
	return all
}

// Each pass has its own order, each iteration of the whole has the same one, and a run can resume in the middle of any
// pass.
func TestPasses(t *testing.T) {
	items := make([]int, 20)
	for i := range items {
		items[i] = i
	}
	shuffled := data.Take(data.Passes(func(pass int) iter.Seq2[int, error] {
		return data.ShuffleBuffer(data.Items(items), 20, 5+uint64(pass))
	}), 60)
	all := drawn(t, shuffled)
	require.Len(t, all, 60)
	for pass := range 3 {
		require.ElementsMatch(t, items, all[20*pass:20*pass+20])
	}
	require.NotEqual(t, all[:20], all[20:40])
	require.NotEqual(t, all[20:40], all[40:])
	require.Equal(t, all, drawn(t, shuffled))
	for n := range 61 {
		require.Equal(t, all[n:], append([]int{}, drawn(t, loop.Data[int](shuffled).From(int64(n)))...))
	}
	two := data.Passes(func(pass int) iter.Seq2[int, error] {
		if pass == 2 {
			return nil
		}
		return data.Items([]int{pass})
	})
	require.Equal(t, []int{0, 1}, drawn(t, two))
	for want, source := range map[string]iter.Seq2[int, error]{
		"data: passes: there is no function (nil)":                                                 data.Passes[int](nil),
		"data: passes: pass 1 returned no batch: the source is empty, or cannot be iterated again": data.Passes(func(int) iter.Seq2[int, error] { return data.Items[int](nil) }),
	} {
		_, err := data.Peek(source)
		require.EqualError(t, err, want)
	}
}

func TestB82_fixedLengthsAndBuckets(t *testing.T) {
	lines := [][]int32{{1, 2, 3}, {4}}
	for name, row := range map[string]struct {
		lengths []int
		want    int
		err     string
	}{
		"longest":       {nil, 3, ""},
		"fixed":         {[]int{5}, 5, ""},
		"just fits":     {[]int{3}, 3, ""},
		"buckets":       {[]int{16, 4, 2, 8}, 4, ""},
		"too long":      {[]int{2, 1}, 0, "data: pad 2 sequences: the longest has 3 items, more than 2: truncate it, leave it out, or give a larger length"},
		"no length":     {[]int{4, 0}, 0, "data: pad 2 sequences: to the length 0: expected at least 1"},
		"over the line": {[]int{1 << 62}, 0, "data: pad 2 sequences, the longest of 3 items, to 4611686018427387904: expected at least one item, and at most 17179869184 in all"},
	} {
		values, mask, err := data.PadSequences(lines, -1, row.lengths...)
		if row.err != "" {
			require.EqualError(t, err, row.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, values.Check())
		require.Equal(t, []int{2, row.want}, values.Dims, name)
		require.Equal(t, []int{2, row.want}, mask.Dims, name)
		require.Equal(t, int32(4), values.Flat.([]int32)[row.want])
		require.Equal(t, int32(-1), values.Flat.([]int32)[2*row.want-1])
		require.False(t, mask.Flat.([]bool)[2*row.want-1])
	}
}

// A step asks for its fields by name each time.
func TestGetAllocatesNothing(t *testing.T) {
	batch := data.Batch{Size: 1, Fields: []data.Field{data.X([]float32{1}, 1), data.Named("z", []float32{1}, 1), data.Y([]float32{2}, 1)}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := batch.Field("y"); err != nil {
			t.Error(err)
		}
	}))
}
