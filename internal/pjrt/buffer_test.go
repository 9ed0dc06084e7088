package pjrt

import (
	"bytes"
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Fetched data is bit-identical to the data that was put.
func TestF40_RoundTrips(t *testing.T) {
	d := openCPU(t, 1).Devices()[0]
	checks := 0
	for dtype := Bool; int(dtype) < len(dtypes); dtype++ {
		if dtype == Token {
			continue
		}
		t.Run(dtype.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				dims := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(rt, "dims")
				a := Array{Shape: Shape{dtype, dims}}
				size, err := a.Shape.Size()
				require.NoError(rt, err)
				a.Data = rapid.SliceOfN(rapid.Byte(), size, size).Draw(rt, "data")
				for i := range a.Data { // a bool is 0 or 1; elements of 4 or 2 bits take the low bits of a byte
					switch {
					case dtype == Bool:
						a.Data[i] &= 1
					case dtype == Int4 || dtype == Uint4 || dtype == F4E2M1FN:
						a.Data[i] &= 15
					case dtype == Int2 || dtype == Uint2:
						a.Data[i] &= 3
					}
				}
				b, err := d.Put(a)
				require.NoError(rt, err)
				assert.True(rt, a.Equal(b.Shape()))
				got := make([]byte, size)
				require.NoError(rt, b.ToHost(got))
				assert.Equal(rt, a.Data, got, "%v", a.Shape)
				clear(got)
				event, err := b.StartToHost(got)
				require.NoError(rt, err)
				require.NoError(rt, firstError(event.Close(), b.Close()))
				assert.Equal(rt, a.Data, got, "%v, the plugin's copy", a.Shape)
				checks++
			})
		})
	}
	t.Logf("%d round trips, exact", checks)
}

func TestF40_SpecialValues(t *testing.T) {
	d := openCPU(t, 1).Devices()[0]
	floats := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64}
	b := put(t, d, Float64, floats, 6)
	assert.Equal(t, Bytes(floats), Bytes(fetch[float64](t, b, 6)))
	ints := []int64{math.MinInt64, math.MaxInt64, 0, -1}
	assert.Equal(t, ints, fetch[int64](t, put(t, d, Int64, ints, 2, 2), 4))
	assert.Equal(t, []uint64{math.MaxUint64}, fetch[uint64](t, put(t, d, Uint64, []uint64{math.MaxUint64}), 1))
}

func TestStrides(t *testing.T) {
	d := openCPU(t, 1).Devices()[0]
	b, err := d.Put(Array{Shape: Shape{Int32, []int{3, 2}}, Data: Bytes([]int32{1, 2, 3, 4, 5, 6}), Strides: []int{4, 12}})
	require.NoError(t, err)
	assert.Equal(t, []int32{1, 4, 2, 5, 3, 6}, fetch[int32](t, b, 6), "the transpose")
}

func TestArraysThatAreRefused(t *testing.T) {
	d := openCPU(t, 1).Devices()[0]
	rows := []struct {
		name  string
		array Array
		text  string
	}{
		{"too short", Array{Shape: Shape{Float32, []int{2, 3}}, Data: make([]byte, 23)}, "2x3xf32: invalid argument: expected 24 bytes, got 23"},
		{"too long", Array{Shape: Shape{Float32, nil}, Data: make([]byte, 5)}, "expected 4 bytes, got 5"},
		{"negative", Array{Shape: Shape{Float32, []int{-1}}}, "negative dimension"},
		{"overflow", Array{Shape: Shape{Float32, []int{1 << 62, 2}}}, "more bytes"},
		{"no type", Array{}, "type with elements"},
		{"unknown type", Array{Shape: Shape{DType(99), nil}}, "dtype 99"},
		{"strides out of it", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{2}}, "lead out"},
		{"strides overflow", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{math.MaxInt}}, "lead out"},
		{"negative stride", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{-1}}, "negative"},
		{"strides of another rank", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{1, 1}}, "expected 1 strides"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for _, f := range []func() error{
				func() error { _, err := d.Put(row.array); return err },
				func() error { _, err := d.Share(row.array, func() { t.Error("released") }); return err },
			} {
				err := f()
				require.Error(t, err)
				assert.Contains(t, err.Error(), row.text)
			}
		})
	}
	b := put(t, d, Float32, []float32{1, 2}, 2)
	require.ErrorIs(t, b.ToHost(make([]byte, 7)), ErrInvalidArgument)
	_, err := b.StartToHost(make([]byte, 9))
	require.ErrorIs(t, err, ErrInvalidArgument)
	_, err = b.CopyTo(nil)
	require.ErrorIs(t, err, ErrInvalidArgument)
}

// aligned returns memory that the CPU plugin can use without a copy.
func aligned(n int) []byte {
	block := make([]byte, n+64)
	at := -uintptr(unsafe.Pointer(&block[0])) % 64
	return block[at:][:n]
}

func TestShare(t *testing.T) {
	c := openCPU(t, 1)
	data := aligned(4096)
	data[7] = 9
	released := make(chan struct{}, 2)
	b, err := c.Devices()[0].Share(Array{Shape: Shape{Uint8, []int{len(data)}}, Data: data}, func() { released <- struct{}{} })
	require.NoError(t, err)
	view, err := b.View()
	require.NoError(t, err)
	assert.Same(t, &data[0], &view.Data[0], "it was copied")
	require.NoError(t, view.Close())
	runtime.GC()
	assert.Empty(t, released, "released while the buffer lives")
	require.NoError(t, b.Close())
	select {
	case <-released:
	case <-time.After(5 * time.Second):
		t.Fatal("never released")
	}
	assert.Empty(t, released, "released twice")
}

func TestView(t *testing.T) {
	c := openCPU(t, 2)
	b := put(t, c.Devices()[0], Int32, []int32{1, 2, 3, 4}, 2, 2)
	view, err := b.View()
	require.NoError(t, err)
	require.NoError(t, b.Close(), "the view keeps the memory")
	assert.Equal(t, Bytes([]int32{1, 2, 3, 4}), view.Data)
	require.NoError(t, view.Close())
	require.ErrorIs(t, view.Close(), ErrClosed)
	assert.Zero(t, Live().Buffers)

	other := put(t, c.Devices()[0], Int32, []int32{5})
	copied, err := other.CopyTo(c.Devices()[1])
	require.NoError(t, err)
	assert.Same(t, c.Devices()[1], copied.Device())
	assert.Equal(t, []int32{5}, fetch[int32](t, copied, 1))
	size, err := copied.Size()
	require.NoError(t, err)
	assert.EqualValues(t, 4, size)
}

func TestDelete(t *testing.T) {
	b := put(t, openCPU(t, 1).Devices()[0], Int32, []int32{5})
	require.NoError(t, b.Delete())
	gone, err := b.IsDeleted()
	require.NoError(t, err)
	assert.True(t, gone)
	var typed *Error
	require.ErrorAs(t, b.ToHost(make([]byte, 4)), &typed)
	t.Log(typed)
	_, err = b.View()
	require.ErrorAs(t, err, &typed)
	require.NoError(t, b.Close())
}

func TestLargeArray(t *testing.T) {
	data := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 1<<20)
	b := put(t, openCPU(t, 1).Devices()[0], Uint8, data, 1<<11, 1<<12)
	assert.True(t, bytes.Equal(data, fetch[uint8](t, b, len(data))))
}
