package hlo_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
)

// Special values of each dtype come back bit-identical, in short, long, scalar and empty constants. The builder copies
// the values.
func TestConstants(t *testing.T) {
	d := open(t)
	inf := math.Inf(1)
	for _, a := range []array{
		of([]int{3}, true, false, true),
		of([]int{2}, int8(math.MinInt8), math.MaxInt8), of([]int{2}, int16(math.MinInt16), math.MaxInt16),
		of([]int{2}, int32(math.MinInt32), math.MaxInt32), of([]int{2}, int64(math.MinInt64), math.MaxInt64),
		of([]int{2}, uint8(0), math.MaxUint8), of([]int{2}, uint16(0), math.MaxUint16),
		of([]int{2}, uint32(0), math.MaxUint32), of([]int{2}, uint64(0), math.MaxUint64),
		of([]int{5}, float32(inf), float32(-inf), float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32),
		of([]int{5}, inf, -inf, math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.MaxFloat64),
		of([]int{3}, float32(0.1), float32(math.Float32frombits(0x7fc00001)), float32(1e-40)),
		of([]int{3}, 0.1, math.NaN(), 1e300),
		of([]int{4}, float16.Float16(0x7c00), float16.Float16(0xfc00), float16.Float16(0x0001), float16.Float16(0x7e00)),
		of([]int{4}, bfloat16.BFloat16(0x7f80), bfloat16.BFloat16(0xff80), bfloat16.BFloat16(0x0001), bfloat16.BFloat16(0x7fc0)),
		of([]int{2}, complex64(complex(inf, math.NaN())), complex64(complex(-0.1, 1e-40))),
		of([]int{2}, complex(inf, math.NaN()), complex(-0.1, 1e-310)),
	} {
		t.Run(a.shape.String(), func(t *testing.T) {
			long, single, empty := zeros(shapes.Make(a.shape.DType, 5, 5)), zeros(shapes.Make(a.shape.DType)), zeros(shapes.Make(a.shape.DType, 2, 0))
			for i := range 25 {
				copyElement(long, i, a, i%a.shape.Size())
			}
			copyElement(single, 0, a, 0)
			all := []array{a, long, single, empty}
			got, err := run(d, nil, func(f compute.Function, _ []compute.Value) (out []compute.Value, err error) {
				for _, c := range all {
					given := append([]byte{}, memory(c.flat)...)
					op, err := f.Constant(c.flat, c.shape.Dimensions...)
					if err != nil {
						return nil, err
					}
					clear(memory(c.flat)) // the caller reuses its slice
					defer copy(memory(c.flat), given)
					out = append(out, op)
				}
				return out, nil
			})
			require.NoError(t, err)
			for i, c := range all {
				require.Equal(t, memory(c.flat), memory(got[i].flat), "%s", c.shape)
				require.Equal(t, c.shape.Dimensions, got[i].shape.Dimensions)
			}
		})
	}
}
