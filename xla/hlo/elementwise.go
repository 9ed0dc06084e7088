package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/go-xla/pkg/types"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

type unary struct {
	takes class
	lower func(x *value) (*value, error)
}

// unaries are the operations on each element that are one statement.
var unaries = map[backends.OpType]unary{
	backends.OpTypeNeg:        {signed | float | complexes, stablehlo.Negate},
	backends.OpTypeCeil:       {float, stablehlo.Ceil},
	backends.OpTypeFloor:      {float, stablehlo.Floor},
	backends.OpTypeRound:      {float, stablehlo.RoundNearestEven},
	backends.OpTypeSqrt:       {float | complexes, stablehlo.Sqrt},
	backends.OpTypeRsqrt:      {float | complexes, stablehlo.Rsqrt},
	backends.OpTypeExp:        {float | complexes, stablehlo.Exponential},
	backends.OpTypeExpm1:      {float | complexes, stablehlo.ExponentialMinusOne},
	backends.OpTypeLog:        {float | complexes, stablehlo.Log},
	backends.OpTypeLog1p:      {float | complexes, stablehlo.LogPlusOne},
	backends.OpTypeLogistic:   {float, stablehlo.Logistic},
	backends.OpTypeErf:        {float, stablehlo.Erf},
	backends.OpTypeSin:        {float, stablehlo.Sine},
	backends.OpTypeCos:        {float, stablehlo.Cosine},
	backends.OpTypeTanh:       {float, stablehlo.Tanh},
	backends.OpTypeBitCount:   {integer, stablehlo.Popcnt},
	backends.OpTypeClz:        {integer, leadingZeros},
	backends.OpTypeBitwiseNot: {integer, stablehlo.Not},
	backends.OpTypeLogicalNot: {boolean, stablehlo.Not},
}

// leadingZeros counts without a sign: XLA folds constants below 0, of 8 or 16 bits, wrongly.
func leadingZeros(x *value) (*value, error) {
	own := dtypes.DType(x.Shape().DType)
	bits, err := unsignedBits(x)
	if err != nil {
		return nil, err
	}
	if bits, err = stablehlo.CountLeadingZeros(bits); err != nil {
		return nil, err
	}
	return convert(bits, own)
}

func (b *Builder) unary(kind backends.OpType, x backends.Op) (backends.Op, error) {
	rule := unaries[kind]
	return b.each(kind, rule.takes, x, rule.lower)
}

// each is an operation on each element of one operand.
func (b *Builder) each(kind backends.OpType, takes class, x backends.Op, lower func(x *value) (*value, error)) (backends.Op, error) {
	return b.emitOne(kind, []backends.Op{x}, func(v []*value) (*value, error) {
		if err := takes.need(v...); err != nil {
			return nil, err
		}
		return lower(v[0])
	})
}

type binary struct {
	takes class
	lower func(lhs, rhs *value) (*value, error)
	total bool // floats are compared in total order, NaN too
}

// binaries are the operations on pairs of elements.
var binaries = map[backends.OpType]binary{
	backends.OpTypeAdd:                  {takes: number, lower: stablehlo.Add},
	backends.OpTypeSub:                  {takes: number, lower: stablehlo.Subtract},
	backends.OpTypeMul:                  {takes: number, lower: stablehlo.Multiply},
	backends.OpTypeDiv:                  {takes: number, lower: stablehlo.Divide},
	backends.OpTypePow:                  {takes: number, lower: stablehlo.Power},
	backends.OpTypeRem:                  {takes: real, lower: stablehlo.Remainder},
	backends.OpTypeMax:                  {takes: real | boolean, lower: stablehlo.Maximum},
	backends.OpTypeMin:                  {takes: real | boolean, lower: stablehlo.Minimum},
	backends.OpTypeBitwiseAnd:           {takes: integer, lower: stablehlo.And},
	backends.OpTypeBitwiseOr:            {takes: integer, lower: stablehlo.Or},
	backends.OpTypeBitwiseXor:           {takes: integer, lower: stablehlo.Xor},
	backends.OpTypeLogicalAnd:           {takes: boolean, lower: stablehlo.And},
	backends.OpTypeLogicalOr:            {takes: boolean, lower: stablehlo.Or},
	backends.OpTypeLogicalXor:           {takes: boolean, lower: stablehlo.Xor},
	backends.OpTypeShiftLeft:            {takes: integer, lower: stablehlo.ShiftLeft},
	backends.OpTypeShiftRightArithmetic: {takes: integer, lower: stablehlo.ShiftRightArithmetic},
	backends.OpTypeShiftRightLogical:    {takes: integer, lower: stablehlo.ShiftRightLogical},

	backends.OpTypeEqual:                    compares(types.CompareEQ, any_, false),
	backends.OpTypeNotEqual:                 compares(types.CompareNE, any_, false),
	backends.OpTypeLessThan:                 compares(types.CompareLT, real|boolean, false),
	backends.OpTypeLessOrEqual:              compares(types.CompareLE, real|boolean, false),
	backends.OpTypeGreaterThan:              compares(types.CompareGT, real|boolean, false),
	backends.OpTypeGreaterOrEqual:           compares(types.CompareGE, real|boolean, false),
	backends.OpTypeEqualTotalOrder:          compares(types.CompareEQ, real|boolean, true),
	backends.OpTypeNotEqualTotalOrder:       compares(types.CompareNE, real|boolean, true),
	backends.OpTypeLessThanTotalOrder:       compares(types.CompareLT, real|boolean, true),
	backends.OpTypeLessOrEqualTotalOrder:    compares(types.CompareLE, real|boolean, true),
	backends.OpTypeGreaterThanTotalOrder:    compares(types.CompareGT, real|boolean, true),
	backends.OpTypeGreaterOrEqualTotalOrder: compares(types.CompareGE, real|boolean, true),
}

func compares(direction types.ComparisonDirection, takes class, total bool) binary {
	return binary{takes, func(lhs, rhs *value) (*value, error) { return compare(lhs, rhs, direction) }, total}
}

// compare picks the kind of comparison from the type of elements.
func compare(lhs, rhs *value, direction types.ComparisonDirection) (*value, error) {
	switch classOf(lhs) {
	case boolean: // go-xla refuses these
		lhs, err := convert(lhs, dtypes.Uint8)
		if err != nil {
			return nil, err
		}
		if rhs, err = convert(rhs, dtypes.Uint8); err != nil {
			return nil, err
		}
		return stablehlo.Compare(lhs, rhs, direction, types.CompareUnsigned)
	case signed:
		return stablehlo.Compare(lhs, rhs, direction, types.CompareSigned)
	case unsigned:
		return stablehlo.Compare(lhs, rhs, direction, types.CompareUnsigned)
	}
	return stablehlo.Compare(lhs, rhs, direction, types.CompareFloat)
}

func (b *Builder) binary(kind backends.OpType, lhs, rhs backends.Op) (backends.Op, error) {
	return b.pairs(kind, binaries[kind], lhs, rhs)
}

func (b *Builder) pairs(kind backends.OpType, rule binary, lhs, rhs backends.Op) (backends.Op, error) {
	return b.emitOne(kind, []backends.Op{lhs, rhs}, func(v []*value) (*value, error) {
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
		for i := range v {
			if v[i], err = broadcast(v[i], dimensions); err != nil {
				return nil, err
			}
			if rule.total && classOf(v[i]) == float {
				if v[i], err = b.ordered(v[i]); err != nil {
					return nil, err
				}
			}
		}
		return rule.lower(v[0], v[1])
	})
}

// common are the dimensions to which both operands are repeated: a scalar to any, a dimension of 1 to the other's.
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

// broadcast repeats a scalar, or along axes of dimension 1.
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

// Abs of a complex number is its length, of the type of its parts.
func (b *Builder) Abs(x backends.Op) (backends.Op, error) {
	return b.each(backends.OpTypeAbs, number, x, func(x *value) (*value, error) {
		if classOf(x) == unsigned {
			return x, nil
		}
		return stablehlo.Abs(x)
	})
}

// Sign is -1, 0 or 1, for a complex number x/|x|; NaN stays NaN.
func (b *Builder) Sign(x backends.Op) (backends.Op, error) {
	return b.each(backends.OpTypeSign, number, x, func(x *value) (*value, error) {
		if classOf(x) != unsigned {
			return stablehlo.Sign(x)
		}
		one, err := full(b.main, x.Shape(), 1)
		if err != nil {
			return nil, err
		}
		return stablehlo.Minimum(x, one)
	})
}

// IsFinite tells which elements are neither infinite nor NaN; of a complex number both parts.
func (b *Builder) IsFinite(x backends.Op) (backends.Op, error) {
	return b.each(backends.OpTypeIsFinite, float|complexes, x, func(x *value) (*value, error) {
		if classOf(x) == float {
			return stablehlo.IsFinite(x)
		}
		return parts(x, func(re, im *value) (*value, error) {
			re, err := stablehlo.IsFinite(re)
			if err != nil {
				return nil, err
			}
			if im, err = stablehlo.IsFinite(im); err != nil {
				return nil, err
			}
			return stablehlo.And(re, im)
		})
	})
}

// IsNaN tells which elements are NaN.
func (b *Builder) IsNaN(x backends.Op) (backends.Op, error) {
	return b.each(backends.OpTypeIsNaN, number, x, func(x *value) (*value, error) {
		return compare(x, x, types.CompareNE)
	})
}

// Clamp limits x; min and max are scalars or of x's shape.
func (b *Builder) Clamp(min, x, max backends.Op) (backends.Op, error) {
	return b.emitOne(backends.OpTypeClamp, []backends.Op{min, x, max}, func(v []*value) (*value, error) {
		if err := real.need(v...); err != nil {
			return nil, err
		}
		return stablehlo.Clamp(v[0], v[1], v[2])
	})
}

// Where takes elements of onTrue or onFalse. Each of the three may be a scalar.
func (b *Builder) Where(condition, onTrue, onFalse backends.Op) (backends.Op, error) {
	return b.emitOne(backends.OpTypeWhere, []backends.Op{condition, onTrue, onFalse}, func(v []*value) (*value, error) {
		if err := boolean.need(v[0]); err != nil {
			return nil, err
		}
		if err := sameType(v[1:]...); err != nil {
			return nil, err
		}
		var dimensions []int
		for _, x := range v {
			if x.Shape().Rank() == 0 {
				continue
			}
			if dimensions != nil && !slices.Equal(dimensions, dims(x)) {
				return nil, fmt.Errorf("dimensions %v and %v, expected the same or scalars", dimensions, dims(x))
			}
			dimensions = dims(x)
		}
		for i, x := range v {
			if i == 0 && x.Shape().Rank() == 0 {
				continue // one condition for all is StableHLO's own
			}
			var err error
			if v[i], err = broadcast(x, dimensions); err != nil {
				return nil, err
			}
		}
		return stablehlo.Select(v[0], v[1], v[2])
	})
}

// ConvertDType converts each element. Of a complex number the real part counts, and anything but 0 is true.
func (b *Builder) ConvertDType(x backends.Op, dtype dtypes.DType) (backends.Op, error) {
	return b.each(backends.OpTypeConvertDType, any_, x, func(x *value) (*value, error) {
		if err := checkType(dtype); err != nil {
			return nil, err
		}
		return convert(x, dtype)
	})
}
