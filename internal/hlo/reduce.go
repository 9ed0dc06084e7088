package hlo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

type reduction struct {
	takes   class
	join    func(lhs, rhs *value) (*value, error)
	neutral func(t dtypes.DType) any
}

func always(x int64) func(dtypes.DType) any { return func(dtypes.DType) any { return x } }

var (
	sums     = reduction{number, stablehlo.Add, always(0)}
	products = reduction{number, stablehlo.Multiply, always(1)}
	maxima   = reduction{real | boolean, stablehlo.Maximum, lowest}
	minima   = reduction{real | boolean, stablehlo.Minimum, highest}
)

var reductions = map[compute.OpType]reduction{
	compute.OpTypeReduceSum:        sums,
	compute.OpTypeReduceProduct:    products,
	compute.OpTypeReduceMax:        maxima,
	compute.OpTypeReduceMin:        minima,
	compute.OpTypeReduceBitwiseAnd: {integer, stablehlo.And, always(-1)},
	compute.OpTypeReduceBitwiseOr:  {integer, stablehlo.Or, always(0)},
	compute.OpTypeReduceBitwiseXor: {integer, stablehlo.Xor, always(0)},
	compute.OpTypeReduceLogicalAnd: {boolean, stablehlo.And, always(1)},
	compute.OpTypeReduceLogicalOr:  {boolean, stablehlo.Or, always(0)},
	compute.OpTypeReduceLogicalXor: {boolean, stablehlo.Xor, always(0)},
}

func reductionOf(kind compute.ReduceOpType) (reduction, error) {
	switch kind {
	case compute.ReduceOpSum:
		return sums, nil
	case compute.ReduceOpProduct:
		return products, nil
	case compute.ReduceOpMax:
		return maxima, nil
	case compute.ReduceOpMin:
		return minima, nil
	}
	return reduction{}, fmt.Errorf("reduction %d, expected sum, product, max or min", int(kind))
}

func (f *Function) function(r reduction, of *value) (neutral *value, join *stablehlo.Function, err error) {
	if err := r.takes.need(of); err != nil {
		return nil, nil, err
	}
	t := of.Shape().DType
	if neutral, err = scalar(f.text, t, r.neutral(t)); err != nil {
		return nil, nil, err
	}
	join, err = f.joining(t, r.join)
	return neutral, join, err
}

func (f *Function) joining(t dtypes.DType, join func(lhs, rhs *value) (*value, error)) (*stablehlo.Function, error) {
	closure := f.text.Closure()
	c := &chain{}
	input := func() (*value, error) { return closure.Input(toXLA(scalarShape(t))) }
	result := c.two(join, c.do(input), c.do(input))
	if c.err != nil {
		return nil, c.err
	}
	return closure, closure.Return(result)
}

func (f *Function) reduce(kind compute.OpType, x compute.Value, axes []int) (compute.Value, error) {
	return f.emitOne(kind, []compute.Value{x}, func(v []*value) (*value, error) {
		rank := v[0].Shape().Rank()
		if err := checkAxes("axes", axes, rank); err != nil {
			return nil, err
		}
		over := slices.Clone(axes)
		if len(over) == 0 {
			for axis := range rank {
				over = append(over, axis)
			}
		}
		neutral, join, err := f.function(reductions[kind], v[0])
		if err != nil || rank == 0 {
			return v[0], err
		}
		slices.Sort(over)
		if c, ok := f.exchanged(v[0]); ok && over[0] == 0 {
			return f.reduceParts(reductions[kind], v[0], c, over)
		}
		return f.reduceOver(v[0], neutral, join, over)
	})
}

// over is sorted.
func (f *Function) reduceOver(v, neutral *value, join *stablehlo.Function, over []int) (*value, error) {
	if axis := over[0]; f.b.cpu && len(over) > 1 && sideBySide(over) && v.Shape().Size() >= fewElements && f.b.joins(v) {
		var err error
		if v, err = joinAxes(v, axis, len(over)); err != nil {
			return nil, err
		}
		over = []int{axis}
	}
	return stablehlo.Reduce(v, neutral, join, over...)
}

func sideBySide(axes []int) bool {
	for i, axis := range axes {
		if axis != axes[0]+i {
			return false
		}
	}
	return true
}

const fewElements = 4096

// joinAxes merges adjacent axes, with a barrier against a split: XLA's CPU reduces over several axes 2 to 30 times as
// slowly (docs/maintain/performance.md).
func joinAxes(v *value, first, n int) (*value, error) {
	from := dims(v)
	size := 1
	for _, d := range from[first : first+n] {
		size *= d
	}
	joined, err := stablehlo.Reshape(v, like(v, slices.Concat(from[:first], []int{size}, from[first+n:])...))
	if err != nil {
		return nil, err
	}
	return kept(joined)
}

// ReduceSum, as all reductions, takes all axes for none.
func (f *Function) ReduceSum(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceSum, x, axes)
}

func (f *Function) ReduceProduct(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceProduct, x, axes)
}

// ReduceMax is NaN if any element is NaN.
func (f *Function) ReduceMax(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMax, x, axes)
}

func (f *Function) ReduceMin(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMin, x, axes)
}

func (f *Function) ReduceBitwiseAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseAnd, x, axes)
}

func (f *Function) ReduceBitwiseOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseOr, x, axes)
}

func (f *Function) ReduceBitwiseXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseXor, x, axes)
}

func (f *Function) ReduceLogicalAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalAnd, x, axes)
}

func (f *Function) ReduceLogicalOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalOr, x, axes)
}

func (f *Function) ReduceLogicalXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalXor, x, axes)
}

// ArgMinMax chooses the first of equal elements, and the first NaN before all others.
func (f *Function) ArgMinMax(x compute.Value, axis int, outputDType dtypes.DType, isMin bool) (compute.Value, error) {
	return f.each(compute.OpTypeArgMinMax, real|boolean, x, func(x *value) (*value, error) {
		if shapeOf(x).DType == dtypes.Bool { // XLA has no order of bools
			var err error
			if x, err = convert(x, dtypes.Uint8); err != nil {
				return nil, err
			}
		}
		if err := checkAxes("axis", []int{axis}, x.Shape().Rank()); err != nil {
			return nil, err
		}
		if classes[outputDType]&integer == 0 {
			return nil, fmt.Errorf("output of type %s, expected an integer", outputDType)
		}
		if dims(x)[axis] == 0 {
			return nil, fmt.Errorf("axis %d has no elements", axis)
		}
		places := toXLA(placeShape(dims(x)))
		worst, direction := lowest(x.Shape().DType), types.CompareGT
		if isMin {
			worst, direction = highest(x.Shape().DType), types.CompareLT
		}
		c := &chain{}
		place := c.do(func() (*value, error) { return f.text.Iota(places, axis) })
		start := c.do(func() (*value, error) { return scalar(f.text, x.Shape().DType, worst) })
		behind := c.do(func() (*value, error) { return scalar(f.text, places.DType, highest(places.DType)) })
		if c.err != nil {
			return nil, c.err
		}
		pick, err := f.picking(x.Shape().DType, places.DType, direction)
		if err != nil {
			return nil, err
		}
		both, err := stablehlo.MultiReduce([]*value{x, place}, []*value{start, behind}, pick, axis)
		if err != nil {
			return nil, err
		}
		if len(both) != 2 {
			return nil, errors.New("go-xla's reduction of two arrays did not give two")
		}
		return convert(both[1], outputDType)
	})
}

// The order of evaluation must not matter.
func (f *Function) picking(t, places dtypes.DType, better types.ComparisonDirection) (*stablehlo.Function, error) {
	closure := f.text.Closure()
	var in [4]*value
	for i, of := range []dtypes.DType{t, places, t, places} {
		var err error
		if in[i], err = closure.Input(toXLA(scalarShape(of))); err != nil {
			return nil, err
		}
	}
	c := &chain{}
	first := c.compare(in[0], in[2], better)
	tie := c.compare(in[0], in[2], types.CompareEQ)
	if classOf(in[0]) == float {
		lhsNaN, rhsNaN := c.compare(in[0], in[0], types.CompareNE), c.compare(in[2], in[2], types.CompareNE)
		first = c.two(stablehlo.Or, first, c.two(stablehlo.And, lhsNaN, c.one(stablehlo.Not, rhsNaN)))
		tie = c.two(stablehlo.Or, tie, c.two(stablehlo.And, lhsNaN, rhsNaN))
	}
	first = c.two(stablehlo.Or, first, c.two(stablehlo.And, tie, c.compare(in[1], in[3], types.CompareLT)))
	element, place := c.choose(first, in[0], in[2]), c.choose(first, in[1], in[3])
	if c.err != nil {
		return nil, c.err
	}
	return closure, closure.Return(element, place)
}

type chain struct{ err error }

func (c *chain) do(f func() (*value, error)) *value {
	if c.err != nil {
		return nil
	}
	var v *value
	v, c.err = f()
	return v
}

func (c *chain) one(f func(x *value) (*value, error), x *value) *value {
	return c.do(func() (*value, error) { return f(x) })
}

func (c *chain) two(f func(lhs, rhs *value) (*value, error), lhs, rhs *value) *value {
	return c.do(func() (*value, error) { return f(lhs, rhs) })
}

func (c *chain) compare(lhs, rhs *value, direction types.ComparisonDirection) *value {
	return c.do(func() (*value, error) { return compare(lhs, rhs, direction) })
}

func (c *chain) choose(condition, onTrue, onFalse *value) *value {
	return c.do(func() (*value, error) { return stablehlo.Select(condition, onTrue, onFalse) })
}

func (c *chain) convert(v *value, to dtypes.DType) *value {
	return c.do(func() (*value, error) { return convert(v, to) })
}

func (c *chain) parts(x *value) (re, im *value) {
	return c.one(stablehlo.Real, x), c.one(stablehlo.Imag, x)
}

func (f *Function) like(c *chain, x *value, n any) *value {
	return c.do(func() (*value, error) { return full(f.text, x.Shape(), n) })
}
