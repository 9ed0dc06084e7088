package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/go-xla/pkg/types"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// FFT transforms the last len(fftLength) axes, of these lengths. The forward transform of reals gives length/2+1 complex
// numbers on the last axis, and its inverse takes as many. Inverses divide by the number of elements.
func (b *Builder) FFT(operand backends.Op, fftType backends.FFTType, fftLength []int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeFFT, []backends.Op{operand}, func(v []*value) (*value, error) {
		x, rank := v[0], v[0].Shape().Rank()
		if len(fftLength) < 1 || len(fftLength) > min(3, rank) {
			return nil, fmt.Errorf("lengths %v, expected from 1 to %d numbers, 3 at most", fftLength, rank)
		}
		takes, want := complexes, slices.Clone(fftLength)
		last := len(want) - 1
		var kind types.FFTType
		switch fftType {
		case backends.FFTForward:
			kind = types.FFTForward
		case backends.FFTInverse:
			kind = types.FFTInverse
		case backends.FFTForwardReal:
			takes, kind = float, types.FFTForwardReal
		case backends.FFTInverseReal:
			kind, want[last] = types.FFTInverseReal, want[last]/2+1
		default:
			return nil, fmt.Errorf("type %d of transform, expected forward, inverse, forward real or inverse real", int(fftType))
		}
		if err := takes.need(x); err != nil {
			return nil, err
		}
		if t := dtypes.DType(x.Shape().DType); t == dtypes.Float16 || t == dtypes.BFloat16 {
			return nil, fmt.Errorf("elements of type %s, expected float32 or float64", t)
		}
		if have := dims(x)[rank-len(want):]; !slices.Equal(have, want) || slices.Contains(fftLength, 0) {
			return nil, fmt.Errorf("last dimensions %v for lengths %v, expected %v, and none 0", have, fftLength, want)
		}
		return stablehlo.FFT(x, kind, fftLength...)
	})
}
