package pjrt

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func BenchmarkFetch(b *testing.B) {
	buffer := put(b, openCPU(b, 1).Devices()[0], Float32, []float32{1})
	dst := make([]byte, 4)
	b.ReportAllocs()
	for b.Loop() {
		if err := buffer.ToHost(dst); err != nil {
			b.Fatal(err)
		}
	}
}

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

func TestLargeArray(t *testing.T) {
	data := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 1<<20)
	b := put(t, openCPU(t, 1).Devices()[0], Uint8, data, 1<<11, 1<<12)
	assert.True(t, bytes.Equal(data, fetch[uint8](t, b, len(data))))
}
