package hlo

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
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
		draw := func() (next, bits *value, err error) { return stablehlo.RNGBitGenerator(v[0], toXLA(bitsShape), types.RNGPhilox) }
		if n := bitsShape.Size(); f.b.cpu && len(f.b.meshes) == 0 && s.Size() == 3 && bitsShape.DType.Bits() == 32 && n >= fewElements && n%4 == 0 {
			draw = func() (next, bits *value, err error) { return f.philox(v[0], toXLA(bitsShape)) }
		}
		next, bits, err := draw()
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

// philox writes the bits of XLA's Philox4x32-10 (Salmon et al. 2011) for XLA's CPU, which computes its own form element
// by element, four times as often as needed. Here each number of 64 bits is half of a block, and a round's products
// are of 32 bits, which it vectorizes.
func (f *Function) philox(state *value, shape xlashapes.Shape) (next, bits *value, err error) {
	const rounds = 10
	multiply, raise := [2]uint64{0xd2511f53, 0xcd9e8d57}, [2]uint64{0x9e3779b9, 0xbb67ae85}
	c, all := &chain{}, xlashapes.Make(dtypes.Uint64, shape.Size()/2)
	number := func(n uint64) *value {
		return c.do(func() (*value, error) { return constant(f.text, []uint64{n}, xlashapes.Make(dtypes.Uint64)) })
	}
	spread := func(x *value) *value {
		return c.do(func() (*value, error) { return stablehlo.BroadcastInDim(x, all, nil) })
	}
	with := func(op func(lhs, rhs *value) (*value, error), x *value, n uint64) *value {
		if c.err != nil {
			return nil
		}
		y := number(n)
		if x.Shape().Rank() > 0 {
			y = spread(y)
		}
		return c.two(op, x, y)
	}
	low := func(x *value) *value { return with(stablehlo.And, x, 1<<32-1) }
	high := func(x *value) *value { return with(stablehlo.ShiftRightLogical, x, 32) }
	of := func(i int) *value {
		one := c.do(func() (*value, error) { return stablehlo.Slice(state, []int{i}, []int{i + 1}, []int{1}) })
		return c.do(func() (*value, error) { return stablehlo.Reshape(one, xlashapes.Make(dtypes.Uint64)) })
	}
	// later is the counter of 128 bits plus n.
	from := [2]*value{of(1), of(2)}
	later := func(n *value, first, second *value) (l, h *value) {
		l = c.two(stablehlo.Add, first, n)
		return l, c.choose(c.compare(l, first, types.CompareLT), with(stablehlo.Add, second, 1), second)
	}
	place := c.do(func() (*value, error) { return f.text.Iota(all, 0) })
	l, h := later(with(stablehlo.ShiftRightLogical, place, 1), spread(from[0]), spread(from[1]))
	x, key := [4]*value{low(l), high(l), low(h), high(h)}, [2]*value{low(of(0)), high(of(0))}
	for range rounds {
		p, q := with(stablehlo.Multiply, x[0], multiply[0]), with(stablehlo.Multiply, x[2], multiply[1])
		mix := func(p, x, key *value) *value {
			return c.two(stablehlo.Xor, c.two(stablehlo.Xor, high(p), x), spread(key))
		}
		x = [4]*value{mix(q, x[1], key[0]), low(q), mix(p, x[3], key[1]), low(p)}
		key = [2]*value{low(with(stablehlo.Add, key[0], raise[0])), low(with(stablehlo.Add, key[1], raise[1]))}
	}
	half := func(x, y *value) *value { return c.two(stablehlo.Or, x, with(stablehlo.ShiftLeft, y, 32)) }
	first := c.compare(with(stablehlo.And, place, 1), spread(number(0)), types.CompareEQ)
	bits = c.choose(first, half(x[0], x[1]), half(x[2], x[3]))
	bits = c.do(func() (*value, error) { return kept(bits) }) // else each use would draw again
	bits = c.do(func() (*value, error) { return stablehlo.BitcastConvert(bits, shape.DType) })
	bits = c.do(func() (*value, error) { return stablehlo.Reshape(bits, shape) })
	l, h = later(number(uint64(shape.Size()/4)), from[0], from[1])
	next = c.do(func() (*value, error) {
		var words []*value
		for _, word := range []*value{of(0), l, h} {
			words = append(words, c.do(func() (*value, error) { return stablehlo.Reshape(word, xlashapes.Make(dtypes.Uint64, 1)) }))
		}
		if c.err != nil {
			return nil, c.err
		}
		return stablehlo.Concatenate(0, words...)
	})
	return next, bits, c.err
}
