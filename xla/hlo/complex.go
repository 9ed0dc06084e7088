package hlo

import (
	"fmt"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// parts gives a complex value's two parts to f.
func parts(x *value, f func(re, im *value) (*value, error)) (*value, error) {
	re, err := stablehlo.Real(x)
	if err != nil {
		return nil, err
	}
	im, err := stablehlo.Imag(x)
	if err != nil {
		return nil, err
	}
	return f(re, im)
}

// Real is the real part; of a float itself.
func (b *Builder) Real(x backends.Op) (backends.Op, error) {
	return b.each(backends.OpTypeReal, float|complexes, x, func(x *value) (*value, error) {
		if classOf(x) == float {
			return x, nil
		}
		return stablehlo.Real(x)
	})
}

// Imag is the imaginary part; of a float 0.
func (b *Builder) Imag(x backends.Op) (backends.Op, error) {
	return b.each(backends.OpTypeImag, float|complexes, x, func(x *value) (*value, error) {
		if classOf(x) == float {
			return full(b.main, x.Shape(), 0)
		}
		return stablehlo.Imag(x)
	})
}

// Conj turns the sign of the imaginary part.
func (b *Builder) Conj(x backends.Op) (backends.Op, error) {
	return b.each(backends.OpTypeConj, complexes, x, func(x *value) (*value, error) {
		return parts(x, func(re, im *value) (*value, error) {
			im, err := stablehlo.Negate(im)
			if err != nil {
				return nil, err
			}
			return stablehlo.Complex(re, im)
		})
	})
}

// Complex makes complex numbers of their parts, float32 or float64.
func (b *Builder) Complex(re, im backends.Op) (backends.Op, error) {
	return b.pairs(backends.OpTypeComplex, binary{takes: float, lower: func(re, im *value) (*value, error) {
		if t := dtypes.DType(re.Shape().DType); t != dtypes.Float32 && t != dtypes.Float64 {
			return nil, fmt.Errorf("parts of type %s, expected float32 or float64", t)
		}
		return stablehlo.Complex(re, im)
	}}, re, im)
}
