package reused

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type field struct {
	name string
	flat any
}

type batch struct{ fields []field }

func TestNext(t *testing.T) {
	of := func(x []float32, y []int32) *batch { return &batch{[]field{{"x", x}, {"y", y}}} }
	large := make([]float32, 1<<20)
	for name, row := range map[string]struct {
		next func(i int) any
		want []int
	}{
		"memory of its own": {func(i int) any { return of([]float32{float32(i)}, []int32{int32(i)}) }, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		"the same batch again": {func() func(int) any {
			b := of([]float32{1, 2}, []int32{3})
			return func(int) any { return b }
		}(), []int{0, 0, 0, 0, 0, 0, 0, 0}},
		"one memory": {func() func(int) any {
			x := make([]float32, 3)
			return func(i int) any { x[2] = float32(i); return of(x, []int32{1}) }
		}(), []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"three in turn": {func() func(int) any {
			y := [3][1]int32{}
			return func(i int) any { y[i%3][0] = int32(i); return of(nil, y[i%3][:]) }
		}(), []int{0, 0, 0, 1, 2, 3, 4, 5}},
		"a large array": {func(i int) any {
			for j := range large {
				large[j] = float32(i + j)
			}
			return *of(large, nil)
		}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"views of one array": {func(i int) any { return of(large[:8-i], nil) }, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		"longer and longer": {func() func(int) any {
			x := make([]uint8, 8)
			return func(i int) any { x[0] = uint8(i); return x[:i+1] }
		}(), []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"no array": {func(i int) any { return i }, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		"nil":      {func(int) any { return nil }, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		"a slice": {func() func(int) any {
			x := make([]uint8, 1)
			return func(i int) any { x[0] = uint8(i); return x }
		}(), []int{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		var w Watch
		var got []int
		for i := range watched {
			require.False(t, w.Done(), name)
			first, last := w.Next(row.next(i))
			require.Equal(t, first == 0, last == 0, name)
			require.LessOrEqual(t, first, last, name)
			got = append(got, last)
		}
		require.Equal(t, row.want, got, name)
		require.True(t, w.Done())
	}
}

// All batches that share a memory lose their numbers when it is written over.
func TestNext_ofSeveralWithOneMemory(t *testing.T) {
	var w Watch
	x, y := []float32{1}, []float32{1}
	for i, change := range []func(){func() {}, func() {}, func() { x[0] = 2 }, func() { y[0] = 2 }, func() { x[0], y[0] = 3, 3 }} {
		change()
		first, last := w.Next([][]float32{x, y})
		require.Equal(t, [][2]int{{}, {}, {1, 2}, {1, 3}, {3, 4}}[i], [2]int{first, last}, i)
	}
}
