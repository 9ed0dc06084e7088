package hlo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

type unary struct {
	takes class
	lower func(x *value) (*value, error)
}

var unaries = map[compute.OpType]unary{
	compute.OpTypeNeg:        {signed | float | complexes, stablehlo.Negate},
	compute.OpTypeCeil:       {float, stablehlo.Ceil},
	compute.OpTypeFloor:      {float, stablehlo.Floor},
	compute.OpTypeRound:      {float, stablehlo.RoundNearestEven},
	compute.OpTypeSqrt:       {float | complexes, stablehlo.Sqrt},
	compute.OpTypeRsqrt:      {float | complexes, stablehlo.Rsqrt},
	compute.OpTypeExp:        {float | complexes, stablehlo.Exponential},
	compute.OpTypeExpm1:      {float | complexes, stablehlo.ExponentialMinusOne},
	compute.OpTypeLog:        {float | complexes, stablehlo.Log},
	compute.OpTypeLog1p:      {float | complexes, stablehlo.LogPlusOne},
	compute.OpTypeLogistic:   {float, stablehlo.Logistic},
	compute.OpTypeErf:        {float, stablehlo.Erf},
	compute.OpTypeSin:        {float, stablehlo.Sine},
	compute.OpTypeCos:        {float, stablehlo.Cosine},
	compute.OpTypeTanh:       {float, stablehlo.Tanh},
	compute.OpTypeBitCount:   {integer, stablehlo.Popcnt},
	compute.OpTypeClz:        {integer, leadingZeros},
	compute.OpTypeBitwiseNot: {integer, stablehlo.Not},
	compute.OpTypeLogicalNot: {boolean, stablehlo.Not},
}

// XLA folds negative 8- and 16-bit constants wrongly.
func leadingZeros(x *value) (*value, error) {
	dtype := x.Shape().DType
	c := &chain{}
	zeros := c.one(stablehlo.CountLeadingZeros, c.one(unsignedBits, x))
	return c.convert(zeros, dtype), c.err
}

func (f *Function) unary(kind compute.OpType, x compute.Value) (compute.Value, error) {
	rule := unaries[kind]
	return f.each(kind, rule.takes, x, rule.lower)
}

func (f *Function) each(kind compute.OpType, takes class, x compute.Value, lower func(x *value) (*value, error)) (compute.Value, error) {
	return f.emitOne(kind, []compute.Value{x}, func(v []*value) (*value, error) {
		if err := takes.need(v...); err != nil {
			return nil, err
		}
		return lower(v[0])
	})
}

type binary struct {
	takes class
	lower func(lhs, rhs *value) (*value, error)
	total bool // total order of floats
	cuts  bool // divides: see divisor
}

var binaries = map[compute.OpType]binary{
	compute.OpTypeAdd:                  {takes: number, lower: stablehlo.Add},
	compute.OpTypeSub:                  {takes: number, lower: stablehlo.Subtract},
	compute.OpTypeMul:                  {takes: number, lower: stablehlo.Multiply},
	compute.OpTypeDiv:                  {takes: number, lower: stablehlo.Divide, cuts: true},
	compute.OpTypePow:                  {takes: number, lower: stablehlo.Power},
	compute.OpTypeAtan2:                {takes: float, lower: stablehlo.Atan2},
	compute.OpTypeRem:                  {takes: real, lower: stablehlo.Remainder, cuts: true},
	compute.OpTypeMax:                  {takes: real | boolean, lower: stablehlo.Maximum},
	compute.OpTypeMin:                  {takes: real | boolean, lower: stablehlo.Minimum},
	compute.OpTypeBitwiseAnd:           {takes: integer, lower: stablehlo.And},
	compute.OpTypeBitwiseOr:            {takes: integer, lower: stablehlo.Or},
	compute.OpTypeBitwiseXor:           {takes: integer, lower: stablehlo.Xor},
	compute.OpTypeLogicalAnd:           {takes: boolean, lower: stablehlo.And},
	compute.OpTypeLogicalOr:            {takes: boolean, lower: stablehlo.Or},
	compute.OpTypeLogicalXor:           {takes: boolean, lower: stablehlo.Xor},
	compute.OpTypeShiftLeft:            {takes: integer, lower: stablehlo.ShiftLeft},
	compute.OpTypeShiftRightArithmetic: {takes: integer, lower: stablehlo.ShiftRightArithmetic},
	compute.OpTypeShiftRightLogical:    {takes: integer, lower: stablehlo.ShiftRightLogical},

	compute.OpTypeEqual:                    compares(types.CompareEQ, number|boolean, false),
	compute.OpTypeNotEqual:                 compares(types.CompareNE, number|boolean, false),
	compute.OpTypeLessThan:                 compares(types.CompareLT, real|boolean, false),
	compute.OpTypeLessOrEqual:              compares(types.CompareLE, real|boolean, false),
	compute.OpTypeGreaterThan:              compares(types.CompareGT, real|boolean, false),
	compute.OpTypeGreaterOrEqual:           compares(types.CompareGE, real|boolean, false),
	compute.OpTypeEqualTotalOrder:          compares(types.CompareEQ, real|boolean, true),
	compute.OpTypeNotEqualTotalOrder:       compares(types.CompareNE, real|boolean, true),
	compute.OpTypeLessThanTotalOrder:       compares(types.CompareLT, real|boolean, true),
	compute.OpTypeLessOrEqualTotalOrder:    compares(types.CompareLE, real|boolean, true),
	compute.OpTypeGreaterThanTotalOrder:    compares(types.CompareGT, real|boolean, true),
	compute.OpTypeGreaterOrEqualTotalOrder: compares(types.CompareGE, real|boolean, true),
}

func compares(direction types.ComparisonDirection, takes class, total bool) binary {
	return binary{takes: takes, lower: func(lhs, rhs *value) (*value, error) { return compare(lhs, rhs, direction) }, total: total}
}

func compare(lhs, rhs *value, direction types.ComparisonDirection) (*value, error) {
	switch classOf(lhs) {
	case signed:
		return stablehlo.Compare(lhs, rhs, direction, types.CompareSigned)
	case unsigned, boolean:
		return stablehlo.Compare(lhs, rhs, direction, types.CompareUnsigned)
	}
	return stablehlo.Compare(lhs, rhs, direction, types.CompareFloat)
}

func (f *Function) binary(kind compute.OpType, lhs, rhs compute.Value) (compute.Value, error) {
	return f.pairs(kind, binaries[kind], lhs, rhs)
}

func (f *Function) pairs(kind compute.OpType, rule binary, lhs, rhs compute.Value) (compute.Value, error) {
	return f.emitOne(kind, []compute.Value{lhs, rhs}, func(v []*value) (*value, error) {
		if err := rule.takes.need(v...); err != nil {
			return nil, err
		}
		if err := sameType(v...); err != nil {
			return nil, err
		}
		dimensions, err := common(dims(v[0]), dims(v[1]))
		if err != nil {
			return nil, err
		}
		if kind == compute.OpTypeAdd {
			if sum, err := f.joined(v[0], v[1]); sum != nil || err != nil {
				return sum, err
			}
		}
		if rule.cuts {
			if v[1], err = f.b.divisor(v[1]); err != nil {
				return nil, err
			}
		}
		for i := range v {
			if v[i], err = broadcast(v[i], dimensions); err != nil {
				return nil, err
			}
			if rule.total && classOf(v[i]) == float {
				if v[i], err = f.ordered(v[i]); err != nil {
					return nil, err
				}
			}
		}
		return rule.lower(v[0], v[1])
	})
}

// divisor refuses constant integers with a 0. Others get a barrier (docs/decisions/0038). At run time x/0 is -1 and x%0
// is x.
func (b *Builder) divisor(v *value) (*value, error) {
	if classOf(v)&integer == 0 {
		return v, nil
	}
	zero, literal := b.zeros[v]
	switch {
	case !literal:
		return kept(v)
	case zero < 0:
		return v, nil
	case v.Shape().Rank() == 0:
		return nil, errors.New("the divisor is the constant 0, which integers have no quotient for: divide by another number, or choose with Where")
	}
	return nil, fmt.Errorf("element %d of the constant divisor is 0, which integers have no quotient for: put another number there, and choose with Where", zero)
}

func common(lhs, rhs []int) ([]int, error) {
	if len(lhs) == 0 {
		return rhs, nil
	}
	if len(rhs) == 0 {
		return lhs, nil
	}
	if len(lhs) != len(rhs) {
		return nil, fmt.Errorf("dimensions %v and %v, expected the same rank or a scalar", lhs, rhs)
	}
	both := slices.Clone(lhs)
	for axis, dim := range rhs {
		switch {
		case both[axis] == 1:
			both[axis] = dim
		case dim != 1 && dim != both[axis]:
			return nil, fmt.Errorf("dimensions %v and %v, expected on axis %d the same, or 1 in one of them", lhs, rhs, axis)
		}
	}
	return both, nil
}

func broadcast(v *value, dimensions []int) (*value, error) {
	if slices.Equal(dims(v), dimensions) {
		return v, nil
	}
	axes := make([]int, v.Shape().Rank())
	for i := range axes {
		axes[i] = i
	}
	return stablehlo.BroadcastInDim(v, like(v, dimensions...), axes)
}

// Abs of a complex number is a float.
func (f *Function) Abs(x compute.Value) (compute.Value, error) {
	return f.each(compute.OpTypeAbs, number, x, func(x *value) (*value, error) {
		if classOf(x) == unsigned {
			return x, nil
		}
		return stablehlo.Abs(x)
	})
}

// Sign of a complex number is x/|x|. NaN stays NaN.
func (f *Function) Sign(x compute.Value) (compute.Value, error) {
	return f.each(compute.OpTypeSign, number, x, func(x *value) (*value, error) {
		if classOf(x) != unsigned {
			return stablehlo.Sign(x)
		}
		c := &chain{}
		return c.two(stablehlo.Minimum, x, f.like(c, x, 1)), c.err
	})
}

func (f *Function) IsFinite(x compute.Value) (compute.Value, error) {
	return f.each(compute.OpTypeIsFinite, float|complexes, x, func(x *value) (*value, error) {
		if classOf(x) == float {
			return stablehlo.IsFinite(x)
		}
		c := &chain{}
		re, im := c.parts(x)
		return c.two(stablehlo.And, c.one(stablehlo.IsFinite, re), c.one(stablehlo.IsFinite, im)), c.err
	})
}

func (f *Function) IsNaN(x compute.Value) (compute.Value, error) {
	return f.each(compute.OpTypeIsNaN, number, x, func(x *value) (*value, error) {
		return compare(x, x, types.CompareNE)
	})
}

func (f *Function) Clamp(min, x, max compute.Value) (compute.Value, error) {
	return f.emitOne(compute.OpTypeClamp, []compute.Value{min, x, max}, func(v []*value) (*value, error) {
		if err := real.need(v...); err != nil {
			return nil, err
		}
		return stablehlo.Clamp(v[0], v[1], v[2])
	})
}

// Where's operands may be scalars.
func (f *Function) Where(condition, onTrue, onFalse compute.Value) (compute.Value, error) {
	return f.emitOne(compute.OpTypeWhere, []compute.Value{condition, onTrue, onFalse}, func(v []*value) (*value, error) {
		output, err := shapeinference.Where(shapeOf(v[0]), shapeOf(v[1]), shapeOf(v[2]))
		if err != nil {
			return nil, err
		}
		for i, x := range v {
			if i == 0 && x.Shape().Rank() == 0 {
				continue // StableHLO takes a scalar condition
			}
			if v[i], err = broadcast(x, output.Dimensions); err != nil {
				return nil, err
			}
		}
		return stablehlo.Select(v[0], v[1], v[2])
	})
}

// ConvertDType to bool is true for all but 0. Otherwise complex numbers lose their imaginary part.
func (f *Function) ConvertDType(x compute.Value, dtype dtypes.DType) (compute.Value, error) {
	return f.each(compute.OpTypeConvertDType, any_, x, func(x *value) (*value, error) {
		if err := checkType(dtype); err != nil {
			return nil, err
		}
		return convert(x, dtype)
	})
}

// convert splits complex values: XLA's folding of a constant's conversion to real ends the process.
func convert(v *value, to dtypes.DType) (*value, error) {
	if v.Shape().DType == to {
		return v, nil
	}
	if classOf(v) != complexes || classes[to] == complexes {
		return stablehlo.Convert(v, to)
	}
	if classes[to] != boolean {
		re, err := stablehlo.Real(v)
		if err != nil {
			return nil, err
		}
		return convert(re, to)
	}
	c := &chain{}
	isTrue := func(v *value) (*value, error) { return stablehlo.Convert(v, dtypes.Bool) }
	re, im := c.parts(v)
	return c.two(stablehlo.Or, c.one(isTrue, re), c.one(isTrue, im)), c.err
}
