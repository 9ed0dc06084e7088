package hlo

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// RNGBitGenerator returns the next state and random bits (Philox). A state has 2 or 3 uint64. Bools are true with
// probability 1/2. Floats may be NaN or infinite. Complex and packed dtypes are errors.
func (f *Function) RNGBitGenerator(state compute.Value, shape shapes.Shape) (newState, values compute.Value, err error) {
	ops, err := f.emit(compute.OpTypeRNGBitGenerator, []compute.Value{state}, func(v []*value) ([]*value, error) {
		s := v[0].Shape()
		if s.DType != dtypes.Uint64 || s.Rank() != 1 || s.Size() < 2 || s.Size() > 3 {
			return nil, fmt.Errorf("state of shape %s, expected 2 or 3 uint64", s)
		}
		if err := checkShape(shape); err != nil {
			return nil, err
		}
		bitsShape := shape.Clone()
		switch classes[shape.DType] {
		case complexes, packed:
			return nil, fmt.Errorf("type of elements %s, expected truth values, integers or floats", shape.DType)
		case boolean:
			bitsShape.DType = dtypes.Uint8
		case float:
			bitsShape.DType = unsignedOf(shape.DType.Size())
		}
		next, bits, err := stablehlo.RNGBitGenerator(v[0], toXLA(bitsShape), types.RNGPhilox)
		if err != nil {
			return nil, err
		}
		switch classes[shape.DType] {
		case boolean:
			c := &chain{}
			bits = c.compare(bits, f.like(c, bits, 128), types.CompareLT)
			err = c.err
		case float:
			bits, err = stablehlo.BitcastConvert(bits, toXLA(shape).DType)
		}
		return []*value{next, bits}, err
	})
	if err != nil {
		return nil, nil, err
	}
	return ops[0], ops[1], nil
}
