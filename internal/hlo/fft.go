package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// FFT transforms the last len(fftLength) axes (1 to 3), of these lengths. The forward real transform returns length/2+1
// complex numbers on the last axis; its inverse takes as many. Inverses divide by the number of elements.
func (f *Function) FFT(operand compute.Value, fftType compute.FFTType, fftLength []int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeFFT, []compute.Value{operand}, func(v []*value) (*value, error) {
		x, rank := v[0], v[0].Shape().Rank()
		if len(fftLength) < 1 || len(fftLength) > min(3, rank) {
			return nil, fmt.Errorf("lengths %v, expected from 1 to %d numbers, 3 at most", fftLength, rank)
		}
		takes, want := complexes, slices.Clone(fftLength)
		last := len(want) - 1
		var kind types.FFTType
		switch fftType {
		case compute.FFTForward:
			kind = types.FFTForward
		case compute.FFTInverse:
			kind = types.FFTInverse
		case compute.FFTForwardReal:
			takes, kind = float, types.FFTForwardReal
		case compute.FFTInverseReal:
			kind, want[last] = types.FFTInverseReal, want[last]/2+1
		default:
			return nil, fmt.Errorf("type %d of transform, expected forward, inverse, forward real or inverse real", int(fftType))
		}
		if err := takes.need(x); err != nil {
			return nil, err
		}
		if t := x.Shape().DType; t == dtypes.Float16 || t == dtypes.BFloat16 {
			return nil, fmt.Errorf("elements of type %s, expected float32 or float64", t)
		}
		if t := x.Shape().DType; f.b.tpu && t.RealDType() == dtypes.Float64 {
			return nil, fmt.Errorf("elements of type %s, but a TPU transforms only float32 and complex64: convert them (graph.ConvertDType)", t)
		}
		if have := dims(x)[rank-len(want):]; !slices.Equal(have, want) || slices.Contains(fftLength, 0) {
			return nil, fmt.Errorf("last dimensions %v for lengths %v, expected %v, and none 0", have, fftLength, want)
		}
		return stablehlo.FFT(x, kind, fftLength...)
	})
}
