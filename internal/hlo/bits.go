package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// Bitcast reads a bool as a byte, 0 or 1, and a complex number as two floats.
func (f *Function) Bitcast(x compute.Value, target dtypes.DType) (compute.Value, error) {
	return f.each(compute.OpTypeBitcast, any_, x, func(x *value) (*value, error) {
		if err := checkType(target); err != nil {
			return nil, err
		}
		have, want := x.Shape().DType.Bits(), target.Bits()
		output := slices.Clone(dims(x))
		switch {
		case have > want:
			output = append(output, have/want)
		case have < want:
			last := len(output) - 1
			if last < 0 || output[last] != want/have {
				return nil, fmt.Errorf("to %s, of %d bits, expected a last axis of %d", target, want, want/have)
			}
			output = output[:last]
		}
		plain, err := withoutParts(x)
		if err != nil {
			return nil, err
		}
		return withParts(f, plain, target, output)
	})
}

// Bools become bytes; complex numbers get their parts on a new last axis.
func withoutParts(x *value) (*value, error) {
	switch classOf(x) {
	case boolean:
		return convert(x, dtypes.Uint8)
	case complexes:
		c := &chain{}
		last := x.Shape().Rank()
		stacked := func(v *value) (*value, error) { return reshape(v, append(slices.Clone(dims(x)), 1)...) }
		join := func(re, im *value) (*value, error) { return stablehlo.Concatenate(last, re, im) }
		re, im := c.parts(x)
		return c.two(join, c.one(stacked, re), c.one(stacked, im)), c.err
	}
	return x, nil
}

func withParts(f *Function, x *value, target dtypes.DType, output []int) (*value, error) {
	switch classes[target] {
	case boolean:
		c := &chain{}
		bytes := c.do(func() (*value, error) { return cast(x, dtypes.Uint8, output) })
		return c.compare(bytes, f.like(c, bytes, 0), types.CompareNE), c.err
	case complexes:
		c, last := &chain{}, len(output)
		both := c.do(func() (*value, error) { return cast(x, target.RealDType(), append(slices.Clone(output), 2)) })
		part := func(i int) *value {
			starts, limits := make([]int, last+1), append(slices.Clone(output), i+1)
			starts[last] = i
			one := c.do(func() (*value, error) { return stablehlo.Slice(both, starts, limits, nil) })
			return c.do(func() (*value, error) { return reshape(one, output...) })
		}
		return c.two(stablehlo.Complex, part(0), part(1)), c.err
	}
	return cast(x, target, output)
}

func cast(x *value, to dtypes.DType, output []int) (*value, error) {
	have, want := x.Shape().DType.Bits(), to.Bits()
	var err error
	if have < want {
		if x, err = reshape(x, append(slices.Clone(output), want/have)...); err != nil {
			return nil, err
		}
	}
	if x.Shape().DType != to {
		if classOf(x) == packed || classes[to] == packed { // XLA folds these constants wrongly
			if x, err = kept(x); err != nil {
				return nil, err
			}
		}
		if x, err = stablehlo.BitcastConvert(x, to); err != nil {
			return nil, err
		}
	}
	return reshape(x, output...)
}

func unsignedBits(x *value) (*value, error) {
	if classOf(x)&(boolean|unsigned) != 0 {
		return x, nil
	}
	return stablehlo.BitcastConvert(x, unsignedOf(x.Shape().DType.Size()))
}

func unsignedOf(bytes int) dtypes.DType {
	return map[int]dtypes.DType{1: dtypes.Uint8, 2: dtypes.Uint16, 4: dtypes.Uint32, 8: dtypes.Uint64}[bytes]
}

// ordered maps floats to integers of the same order, -NaN first, NaN last. XLA folds its total-order comparison wrongly
// for NaN constants; its CPU lacks it for 16 bits.
func (f *Function) ordered(v *value) (*value, error) {
	c, size := &chain{}, v.Shape().DType.Size()
	as := map[int]dtypes.DType{2: dtypes.Int16, 4: dtypes.Int32, 8: dtypes.Int64}[size]
	bits := c.do(func() (*value, error) { return stablehlo.BitcastConvert(v, as) })
	last, rest := f.like(c, bits, 8*size-1), f.like(c, bits, highest(as))
	sign := c.two(stablehlo.ShiftRightArithmetic, bits, last)
	return c.two(stablehlo.Xor, bits, c.two(stablehlo.And, sign, rest)), c.err
}
