package hlo

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/stablehlo"
)

func (f *Function) Real(x compute.Value) (compute.Value, error) {
	return f.each(compute.OpTypeReal, float|complexes, x, func(x *value) (*value, error) {
		if classOf(x) == float {
			return x, nil
		}
		return stablehlo.Real(x)
	})
}

func (f *Function) Imag(x compute.Value) (compute.Value, error) {
	return f.each(compute.OpTypeImag, float|complexes, x, func(x *value) (*value, error) {
		if classOf(x) == float {
			return full(f.text, x.Shape(), 0)
		}
		return stablehlo.Imag(x)
	})
}

func (f *Function) Conj(x compute.Value) (compute.Value, error) {
	return f.each(compute.OpTypeConj, complexes, x, func(x *value) (*value, error) {
		c := &chain{}
		re, im := c.parts(x)
		return c.two(stablehlo.Complex, re, c.one(stablehlo.Negate, im)), c.err
	})
}

func (f *Function) Complex(re, im compute.Value) (compute.Value, error) {
	return f.pairs(compute.OpTypeComplex, binary{takes: float, lower: func(re, im *value) (*value, error) {
		if t := re.Shape().DType; t != dtypes.Float32 && t != dtypes.Float64 {
			return nil, fmt.Errorf("parts of type %s, expected float32 or float64", t)
		}
		return stablehlo.Complex(re, im)
	}}, re, im)
}
