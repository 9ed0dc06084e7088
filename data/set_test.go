package data

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// numbered is a set whose x (two columns) and y both tell the number of the example.
func numbered(t require.TestingT, n int) *Set {
	x, y := make([]float32, 2*n), make([]int32, n)
	for i := range n {
		x[2*i], x[2*i+1], y[i] = float32(i), -float32(i), int32(i)
	}
	s, err := New(X(x, n, 2), Y(y, n))
	require.NoError(t, err)
	return s
}

// numbers are the examples in fields made by numbered, after a look whether the rows of x and y still belong together.
func numbers(t require.TestingT, fields []Field) []int {
	x, y := fields[0].Array, fields[1].Array
	require.NoError(t, x.Check())
	require.NoError(t, y.Check())
	var got []int
	for i, n := range y.Flat.([]int32) {
		require.Equal(t, []float32{float32(n), -float32(n)}, x.Flat.([]float32)[2*i:2*i+2])
		got = append(got, int(n))
	}
	return got
}

func count(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestNew(t *testing.T) {
	x := X(make([]float32, 6), 3, 2)
	for _, c := range []struct {
		name   string
		fields []Field
		want   string
	}{
		{"two fields", []Field{x, Y(make([]int32, 3), 3)}, ""},
		{"texts", []Field{X([]string{"a", ""}, 2)}, ""},
		{"no examples", []Field{X([]float32{}, 0, 2)}, ""},
		{"no fields", nil, "at least one field"},
		{"no name", []Field{x, Named("", make([]int32, 3), 3)}, "field 2 of 2 has no name"},
		{"same name", []Field{x, x}, `data: fields 1 and 2 of 2 have the same name "x": give each its own name`},
		{"wrong dims", []Field{X(make([]float32, 5), 3, 2)}, `data: field "x": dims [3 2] mean 6 elements, but Flat has 5`},
		{"wrong type", []Field{X([]complex64{1}, 1)}, `field "x": the array's Flat is []complex64`},
		{"no axes", []Field{X([]float32{1})}, `field "x" has no axes`},
		{"other length", []Field{x, Y(make([]int32, 4), 4)}, `field "y" has 4 examples, but field "x" has 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(c.fields...)
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, c.fields[0].Array.Dims[0], s.Len())
				require.Equal(t, c.fields, s.Fields())
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Nil(t, s)
		})
	}
}

func TestSetKeepsItsShape(t *testing.T) {
	dims := []int{3, 1}
	fields := []Field{Named("x", make([]float32, 3), dims...)}
	s, err := New(fields...)
	require.NoError(t, err)
	dims[1], fields[0].Name = 7, "z"
	got := s.Fields()
	got[0].Array.Dims[1], got[0].Name = 9, "w"
	require.Equal(t, []Field{X(make([]float32, 3), 3, 1)}, s.Fields())
}

func TestSetSlice(t *testing.T) {
	s := numbered(t, 5)
	part, err := s.Slice(1, 4)
	require.NoError(t, err)
	require.Equal(t, 3, part.Len())
	require.Equal(t, []int{1, 2, 3}, numbers(t, part.Fields()))
	require.Same(t, &s.fields[1].Array.Flat.([]int32)[1], &part.fields[1].Array.Flat.([]int32)[0])
	for _, c := range [][2]int{{-1, 2}, {3, 2}, {0, 6}, {math.MaxInt, math.MinInt}} {
		_, err := s.Slice(c[0], c[1])
		require.ErrorContains(t, err, "of a set of 5 examples", "%v", c)
	}
}

func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 200).Draw(t, "n")
		k := rapid.IntRange(1, n-1).Draw(t, "k")
		seed := rapid.Uint64().Draw(t, "seed")
		s := numbered(t, n)
		train, test, err := s.Split(float64(k)/float64(n), seed)
		require.NoError(t, err)
		a, b := numbers(t, train.Fields()), numbers(t, test.Fields())
		require.Len(t, a, k)
		require.Equal(t, k, train.Len())
		require.Equal(t, n-k, test.Len())
		all := slices.Concat(a, b)
		slices.Sort(all)
		require.Equal(t, count(n), all, "each example is on one side")

		again, _, err := s.Split(float64(k)/float64(n), seed)
		require.NoError(t, err)
		require.Equal(t, a, numbers(t, again.Fields()))
	})
	train, test, err := numbered(t, 20).Split(0.5, 1)
	require.NoError(t, err)
	require.NotEqual(t, deal(t, numbered(t, 20).Batches(10, Shuffle(1)).All(), -1), [][]int{numbers(t, train.Fields()), numbers(t, test.Fields())},
		"a split and a shuffle by the same seed are independent")
	for _, n := range []int{100, 1797} { // in floating point 0.29 of 100 lies below 29
		train, _, err := numbered(t, n).Split(0.29, 0)
		require.NoError(t, err)
		require.Equal(t, n*29/100, train.Len())
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, fraction := range []float64{0, 1, -0.5, 1.5, math.NaN(), math.Inf(1)} {
		_, _, err := numbered(t, 10).Split(fraction, 0)
		require.ErrorContains(t, err, "between 0 and 1", "%v", fraction)
	}
	for _, n := range []int{0, 1} {
		_, _, err := numbered(t, n).Split(0.5, 0)
		require.ErrorContains(t, err, "one side would be empty")
	}
	for _, fraction := range []float64{0.05, math.Nextafter(1, 0)} {
		_, _, err := numbered(t, 10).Split(fraction, 0)
		require.ErrorContains(t, err, "one side would be empty", "%v", fraction)
	}
}

func TestBatchGet(t *testing.T) {
	s := numbered(t, 2)
	b := Batch{Fields: s.Fields(), Size: 2}
	y, err := b.Field("y")
	require.NoError(t, err)
	require.Equal(t, Array{[]int32{0, 1}, []int{2}}, y)
	_, err = b.Field("labels")
	require.EqualError(t, err, `data: the batch has no field "labels"; there are "x", "y"`)
	_, err = Batch{}.Field("x")
	require.EqualError(t, err, `data: the batch has no field "x", nor any other`)
	require.Equal(t, 2, b.Samples())
}

// A set with functions deals out what they make of its batches, in each way that leads to batches.
func TestSet_MapBatches(t *testing.T) {
	s, err := New(X([]float32{0, 1, 2, 3, 4}, 5), Y([]int32{0, 0, 1, 1, 1}, 5))
	require.NoError(t, err)
	twice := OnField("x", func(a Array) (Array, error) {
		to := slices.Clone(a.Flat.([]float32))
		for i := range to {
			to[i] *= 2
		}
		return Array{to, a.Dims}, nil
	})
	mapped, err := s.MapBatches(twice)
	require.NoError(t, err)
	mapped, err = mapped.MapBatches(twice)
	require.NoError(t, err)
	require.False(t, s.Mapped())
	numbers := func(s *Set) (all []float32) {
		for b, err := range s.Batches(2, Kept).All() {
			require.NoError(t, err)
			all = append(all, b.Fields[0].Array.Flat.([]float32)...)
		}
		return all
	}
	require.Equal(t, []float32{0, 4, 8, 12, 16}, numbers(mapped))
	require.Equal(t, []float32{0, 1, 2, 3, 4}, numbers(s), "the set that it was made of")
	resumed, err := Collect(mapped.Batches(2, Kept).sequence(2, 2), 10)
	require.NoError(t, err)
	require.Equal(t, []float32{16, 0, 4, 8, 12, 16}, resumed.Fields()[0].Array.Flat, "a run that goes on")
	part, err := mapped.Slice(1, 3)
	require.NoError(t, err)
	require.Equal(t, []float32{4, 8}, numbers(part))
	part, err = mapped.Gather([]int{4, 0})
	require.NoError(t, err)
	require.Equal(t, []float32{16, 0}, numbers(part))
	part, err = mapped.Shard(1, 2, Kept)
	require.NoError(t, err)
	require.Len(t, numbers(part), 2)
	require.Subset(t, []float32{0, 4, 8, 12, 16}, numbers(part))
	_, part, err = mapped.Split(0.5, 1, Stratified("y"))
	require.NoError(t, err)
	require.True(t, part.Mapped())

	failing, err := s.MapBatches(func(b Batch) (Batch, error) { return Batch{}, fmt.Errorf("no batch at %d", b.At) })
	require.NoError(t, err)
	_, err = Peek(failing.Batches(2).sequence(1, 1))
	require.EqualError(t, err, "no batch at 2")
	_, err = Peek(OnDevice(mapped).Batches(2).All())
	require.ErrorContains(t, err, "data: on device: the set has functions of MapBatches")
	_, err = s.MapBatches(nil)
	require.ErrorContains(t, err, "data: map batches: there is no function (nil)")
}

// The names of classes stay with their numbers, and leave them where a function changes these.
func TestSet_classes(t *testing.T) {
	y := Y([]int32{0, 1, 1}, 3)
	y.Classes = []string{"cat", "dog"}
	set := must.M1(New(X([]float32{1, 2, 3}, 3), y))
	kept := []*Set{set, must.M1(set.Slice(1, 2)), must.M1(set.Gather([]int{2})), must.M1(set.Map(Rename("x", "z"), Select("y", "z"))),
		must.M1(set.Where(func(Batch) bool { return true }))}
	for _, set := range kept {
		require.Equal(t, y.Classes, set.Classes("y"))
		for b := range set.Batches(1).All() {
			require.Equal(t, y.Classes, b.Fields[slices.IndexFunc(b.Fields, func(f Field) bool { return f.Name == "y" })].Classes)
		}
	}
	require.Nil(t, set.Classes("x"))
	require.Nil(t, set.Classes("z"))
	numbers := OnField("y", func(Array) (Array, error) { return Array{Flat: []int32{2, 0, 1}, Dims: []int{3}}, nil })
	require.Nil(t, must.M1(set.Map(numbers)).Classes("y"))
	y.Array.Flat = []float32{0, 1, 1}
	require.Nil(t, must.M1(New(y)).Classes("y"))
}
