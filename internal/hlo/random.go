package hlo

import (
	"errors"
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
		draw := func() (next, bits *value, err error) {
			return stablehlo.RNGBitGenerator(v[0], toXLA(bitsShape), types.RNGPhilox)
		}
		if n := bitsShape.Size(); f.b.cpu && len(f.b.meshes) == 0 && s.Size() == 3 && bitsShape.DType.Bits() == 32 && n >= fewElements && n%(4*philoxParts) == 0 {
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

const philoxParts = 4

// philox writes XLA's Philox4x32-10 (Salmon et al. 2011) for XLA's CPU, which computes its own element by element,
// four times as often as needed. An element is half a block, 64 bits; a round multiplies numbers of 32 bits. The loop
// prevents a repetition in each use.
func (f *Function) philox(state *value, shape xlashapes.Shape) (next, bits *value, err error) {
	c, more, body := &chain{}, f.text.Closure(), f.text.Closure()
	main, test, each := words{c, f.text}, words{c, more}, words{c, body}
	half := xlashapes.Make(dtypes.Uint64, shape.Size()/2)
	start := []*value{main.number(0), state, c.do(func() (*value, error) { return full(f.text, half, 0) })}
	var tested, in []*value
	for _, v := range start {
		tested = append(tested, c.do(func() (*value, error) { return more.Input(v.Shape()) }))
		in = append(in, c.do(func() (*value, error) { return body.Input(v.Shape()) }))
	}
	size := half.Size() / philoxParts
	from := each.with(stablehlo.Multiply, in[0], uint64(size))
	part := each.blocks(in[1], from, xlashapes.Make(dtypes.Uint64, size))
	all := c.do(func() (*value, error) { return stablehlo.DynamicUpdateSlice(in[2], part, []*value{from}) })
	again, count := c.compare(tested[0], test.number(philoxParts), types.CompareLT), each.with(stablehlo.Add, in[0], 1)
	if c.err == nil {
		c.err = errors.Join(more.Return(again), body.Return(count, in[1], all))
	}
	bits = c.do(func() (*value, error) {
		results, err := stablehlo.While(more, body, start...)
		if err != nil {
			return nil, err
		}
		return stablehlo.BitcastConvert(results[2], shape.DType)
	})
	bits = c.do(func() (*value, error) { return stablehlo.Reshape(bits, shape) })
	key := main.at(state, 0)
	low, high := main.later(main.at(state, 1), main.at(state, 2), main.number(uint64(shape.Size()/4)))
	next = c.do(func() (*value, error) {
		var parts []*value
		for _, w := range []*value{key, low, high} {
			parts = append(parts, c.do(func() (*value, error) { return stablehlo.Reshape(w, xlashapes.Make(dtypes.Uint64, 1)) }))
		}
		if c.err != nil {
			return nil, c.err
		}
		return stablehlo.Concatenate(0, parts...)
	})
	return next, bits, c.err
}

type words struct {
	*chain
	of *stablehlo.Function
}

func (w words) number(n uint64) *value {
	return w.do(func() (*value, error) { return scalar(w.of, dtypes.Uint64, n) })
}

func (w words) spread(x *value, to xlashapes.Shape) *value {
	return w.do(func() (*value, error) { return stablehlo.BroadcastInDim(x, to, nil) })
}

func (w words) with(op func(lhs, rhs *value) (*value, error), x *value, n uint64) *value {
	return w.do(func() (*value, error) {
		y, err := full(w.of, x.Shape(), n)
		if err != nil {
			return nil, err
		}
		return op(x, y)
	})
}

func (w words) low(x *value) *value  { return w.with(stablehlo.And, x, 1<<32-1) }
func (w words) high(x *value) *value { return w.with(stablehlo.ShiftRightLogical, x, 32) }

func (w words) at(state *value, i int) *value {
	one := w.do(func() (*value, error) { return stablehlo.Slice(state, []int{i}, []int{i + 1}, []int{1}) })
	return w.do(func() (*value, error) { return stablehlo.Reshape(one, xlashapes.Make(dtypes.Uint64)) })
}

func (w words) later(low, high, n *value) (l, h *value) {
	l = w.two(stablehlo.Add, low, n)
	return l, w.choose(w.compare(l, low, types.CompareLT), w.with(stablehlo.Add, high, 1), high)
}

// blocks returns halves of Philox's blocks after the state's counter, from a half on.
func (w words) blocks(state, from *value, shape xlashapes.Shape) *value {
	const rounds = 10
	multiply, raise := [2]uint64{0xd2511f53, 0xcd9e8d57}, [2]uint64{0x9e3779b9, 0xbb67ae85}
	place := w.two(stablehlo.Add, w.do(func() (*value, error) { return w.of.Iota(shape, 0) }), w.spread(from, shape))
	l, h := w.later(w.spread(w.at(state, 1), shape), w.spread(w.at(state, 2), shape), w.with(stablehlo.ShiftRightLogical, place, 1))
	key := w.at(state, 0)
	x, keys := [4]*value{w.low(l), w.high(l), w.low(h), w.high(h)}, [2]*value{w.low(key), w.high(key)}
	for range rounds {
		p, q := w.with(stablehlo.Multiply, x[0], multiply[0]), w.with(stablehlo.Multiply, x[2], multiply[1])
		mix := func(product, x, key *value) *value {
			return w.two(stablehlo.Xor, w.two(stablehlo.Xor, w.high(product), x), w.spread(key, shape))
		}
		x = [4]*value{mix(q, x[1], keys[0]), w.low(q), mix(p, x[3], keys[1]), w.low(p)}
		for i := range keys {
			keys[i] = w.low(w.with(stablehlo.Add, keys[i], raise[i]))
		}
	}
	pair := func(low, high *value) *value { return w.two(stablehlo.Or, low, w.with(stablehlo.ShiftLeft, high, 32)) }
	first := w.do(func() (*value, error) { return full(w.of, shape, 0) })
	first = w.compare(w.with(stablehlo.And, place, 1), first, types.CompareEQ)
	return w.choose(first, pair(x[0], x[1]), pair(x[2], x[3]))
}
