package data

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/arrays"
)

type named float32

func TestArrayCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		a    Array
		want string // in the error; "" for none
	}{
		{"matrix", Array{make([]float32, 6), []int{2, 3}}, ""},
		{"single element", Array{[]bool{true}, nil}, ""},
		{"no rows", Array{[]int8{}, []int{0, 3}}, ""},
		{"zero Array", Array{}, "Flat is nil"},
		{"not a slice", Array{3, nil}, "Flat is int"},
		{"slice of int", Array{[]int{1}, []int{1}}, "Flat is []int"},
		{"named type", Array{[]named{1}, []int{1}}, "Flat is []data.named"},
		{"one too few", Array{make([]uint8, 5), []int{2, 3}}, "dims [2 3] mean 6 elements, but Flat has 5"},
		{"no dims for many", Array{make([]uint8, 5), nil}, "mean 1 elements, but Flat has 5"},
		{"negative", Array{make([]uint8, 6), []int{-2, -3}}, "dims [-2 -3]"},
		{"overflow", Array{make([]uint8, 0), []int{math.MaxInt, 4}}, "2^63"},
		{"overflow to zero", Array{make([]uint8, 0), []int{1 << 32, 1 << 32}}, "2^63"},
		{"overflow beside a zero", Array{make([]uint8, 0), []int{0, 1 << 32, 1 << 32}}, "2^63"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.a.Check()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "data: ")
			require.Equal(t, Array{}, c.a.Slice(0, 0))
			require.Equal(t, Array{}, c.a.Gather(nil))
		})
	}
}

func TestArrayOutOfRangeIsRefused(t *testing.T) {
	a := Array{[]int32{1, 2, 3, 4}, []int{2, 2}}
	for name, got := range map[string]Array{
		"slice from below 0":  a.Slice(-1, 1),
		"slice past the end":  a.Slice(0, 3),
		"slice the wrong way": a.Slice(2, 1),
		"gather below 0":      a.Gather([]int{0, -1}),
		"gather past the end": a.Gather([]int{2}),
		"no axis to slice":    Array{[]int32{1}, nil}.Slice(0, 1),
		"no axis to gather":   Array{[]int32{1}, nil}.Gather([]int{0}),
	} {
		require.Equal(t, Array{}, got, name)
		require.Error(t, got.Check(), name)
	}
}

// testElements checks names and views for one type, against plain indexing of the same slice.
func testElements[T arrays.Element](t *testing.T, name string, make1 func(i int) T) {
	t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
		dims := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 4).Draw(t, "dims")
		size, _ := arrays.Size(dims...)
		flat := make([]T, size)
		for i := range flat {
			flat[i] = make1(i)
		}
		a := Array{flat, dims}
		require.NoError(t, a.Check())
		require.Equal(t, name, a.DType())
		require.Equal(t, size, a.Size())
		require.Equal(t, dims[0], a.Len())

		j := rapid.IntRange(0, a.Len()).Draw(t, "j")
		i := rapid.IntRange(0, j).Draw(t, "i")
		var rows []int
		if a.Len() > 0 {
			rows = rapid.SliceOfN(rapid.IntRange(0, a.Len()-1), 0, 9).Draw(t, "rows")
		}
		width := 1
		for _, d := range dims[1:] {
			width *= d
		}
		view, copied := a.Slice(i, j), a.Gather(rows)
		require.NoError(t, view.Check())
		require.NoError(t, copied.Check())
		require.Equal(t, append([]int{j - i}, dims[1:]...), view.Dims)
		require.Equal(t, append([]int{len(rows)}, dims[1:]...), copied.Dims)
		require.True(t, slices.Equal(flat[i*width:j*width], view.Flat.([]T)))
		want := []T{}
		for _, r := range rows {
			want = append(want, flat[r*width:(r+1)*width]...)
		}
		require.True(t, slices.Equal(want, copied.Flat.([]T)))

		if v := view.Flat.([]T); len(v) > 0 {
			require.Same(t, &flat[i*width], &v[0], "a slice is a view")
			require.Equal(t, len(v), cap(v), "an append to a view would write into the next rows")
		}
	}))
}

func TestArrayElements(t *testing.T) {
	testElements(t, "bool", func(i int) bool { return i%3 == 0 })
	testElements(t, "int8", func(i int) int8 { return int8(i) })
	testElements(t, "int16", func(i int) int16 { return int16(i) })
	testElements(t, "int32", func(i int) int32 { return int32(i) })
	testElements(t, "int64", func(i int) int64 { return int64(i) })
	testElements(t, "uint8", func(i int) uint8 { return uint8(i) })
	testElements(t, "uint16", func(i int) uint16 { return uint16(i) })
	testElements(t, "uint32", func(i int) uint32 { return uint32(i) })
	testElements(t, "uint64", func(i int) uint64 { return uint64(i) })
	testElements(t, "float32", func(i int) float32 { return float32(i) })
	testElements(t, "float64", func(i int) float64 { return float64(i) })
}

// BenchmarkGather compares gathering a batch with copying as many bytes in one piece.
func BenchmarkGather(b *testing.B) {
	const batch = 128
	for _, width := range []int{1, 4, 64, 784} {
		examples := 4 << 20 / width // 16 MB, more than the caches
		a := Array{make([]float32, examples*width), []int{examples, width}}
		rows := make([]int, examples)
		arrays.Permute(rows, 1, 0)
		b.Run(fmt.Sprintf("gather/%d", width), func(b *testing.B) {
			b.SetBytes(int64(4 * batch * width))
			for i := range b.N {
				at := i * batch % (examples - batch)
				a.gather(rows[at:at+batch], a.Dims)
			}
		})
		b.Run(fmt.Sprintf("copy/%d", width), func(b *testing.B) {
			b.SetBytes(int64(4 * batch * width))
			from := a.Flat.([]float32)
			for i := range b.N {
				at := i * batch % (examples - batch)
				to := make([]float32, batch*width)
				copy(to, from[at*width:])
			}
		})
	}
}
