package hlo

import "github.com/gomlx/gomlx/backends"

// The methods of the operations in the tables unaries and binaries. Operands of two are repeated to common dimensions:
// a scalar to any, a dimension of 1 to the other's.

// Neg is a unary operation, see [backends.StandardOps].
func (b *Builder) Neg(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeNeg, x)
}

// Ceil is a unary operation, see [backends.StandardOps].
func (b *Builder) Ceil(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeCeil, x)
}

// Floor is a unary operation, see [backends.StandardOps].
func (b *Builder) Floor(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeFloor, x)
}

// Round rounds to the nearest integer, halves to the even one.
func (b *Builder) Round(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeRound, x)
}

// Sqrt is a unary operation, see [backends.StandardOps].
func (b *Builder) Sqrt(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeSqrt, x)
}

// Rsqrt is a unary operation, see [backends.StandardOps].
func (b *Builder) Rsqrt(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeRsqrt, x)
}

// Exp is a unary operation, see [backends.StandardOps].
func (b *Builder) Exp(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeExp, x)
}

// Expm1 is a unary operation, see [backends.StandardOps].
func (b *Builder) Expm1(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeExpm1, x)
}

// Log is a unary operation, see [backends.StandardOps].
func (b *Builder) Log(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLog, x)
}

// Log1p is a unary operation, see [backends.StandardOps].
func (b *Builder) Log1p(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLog1p, x)
}

// Logistic is a unary operation, see [backends.StandardOps].
func (b *Builder) Logistic(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLogistic, x)
}

// Erf is the error function.
func (b *Builder) Erf(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeErf, x)
}

// Sin is a unary operation, see [backends.StandardOps].
func (b *Builder) Sin(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeSin, x)
}

// Cos is a unary operation, see [backends.StandardOps].
func (b *Builder) Cos(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeCos, x)
}

// Tanh is a unary operation, see [backends.StandardOps].
func (b *Builder) Tanh(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeTanh, x)
}

// BitCount counts the bits that are 1.
func (b *Builder) BitCount(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeBitCount, x)
}

// Clz counts the leading bits that are 0.
func (b *Builder) Clz(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeClz, x)
}

// BitwiseNot is a unary operation, see [backends.StandardOps].
func (b *Builder) BitwiseNot(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeBitwiseNot, x)
}

// LogicalNot is a unary operation, see [backends.StandardOps].
func (b *Builder) LogicalNot(x backends.Op) (backends.Op, error) {
	return b.unary(backends.OpTypeLogicalNot, x)
}

// Add is a binary operation, see [backends.StandardOps].
func (b *Builder) Add(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeAdd, lhs, rhs)
}

// Sub is a binary operation, see [backends.StandardOps].
func (b *Builder) Sub(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeSub, lhs, rhs)
}

// Mul is a binary operation, see [backends.StandardOps].
func (b *Builder) Mul(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeMul, lhs, rhs)
}

// Div of integers is cut towards 0.
func (b *Builder) Div(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeDiv, lhs, rhs)
}

// Pow is a binary operation, see [backends.StandardOps].
func (b *Builder) Pow(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypePow, lhs, rhs)
}

// Rem has the sign of lhs, as Go's %.
func (b *Builder) Rem(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeRem, lhs, rhs)
}

// Max is a binary operation, see [backends.StandardOps].
func (b *Builder) Max(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeMax, lhs, rhs)
}

// Min is a binary operation, see [backends.StandardOps].
func (b *Builder) Min(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeMin, lhs, rhs)
}

// BitwiseAnd is a binary operation, see [backends.StandardOps].
func (b *Builder) BitwiseAnd(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeBitwiseAnd, lhs, rhs)
}

// BitwiseOr is a binary operation, see [backends.StandardOps].
func (b *Builder) BitwiseOr(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeBitwiseOr, lhs, rhs)
}

// BitwiseXor is a binary operation, see [backends.StandardOps].
func (b *Builder) BitwiseXor(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeBitwiseXor, lhs, rhs)
}

// LogicalAnd is a binary operation, see [backends.StandardOps].
func (b *Builder) LogicalAnd(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLogicalAnd, lhs, rhs)
}

// LogicalOr is a binary operation, see [backends.StandardOps].
func (b *Builder) LogicalOr(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLogicalOr, lhs, rhs)
}

// LogicalXor is a binary operation, see [backends.StandardOps].
func (b *Builder) LogicalXor(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLogicalXor, lhs, rhs)
}

// ShiftLeft is a binary operation, see [backends.StandardOps].
func (b *Builder) ShiftLeft(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeShiftLeft, lhs, rhs)
}

// ShiftRightArithmetic keeps the sign bit.
func (b *Builder) ShiftRightArithmetic(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeShiftRightArithmetic, lhs, rhs)
}

// ShiftRightLogical fills with 0.
func (b *Builder) ShiftRightLogical(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeShiftRightLogical, lhs, rhs)
}

// Equal is a binary operation, see [backends.StandardOps].
func (b *Builder) Equal(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeEqual, lhs, rhs)
}

// NotEqual is a binary operation, see [backends.StandardOps].
func (b *Builder) NotEqual(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeNotEqual, lhs, rhs)
}

// LessThan is a binary operation, see [backends.StandardOps].
func (b *Builder) LessThan(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLessThan, lhs, rhs)
}

// LessOrEqual is a binary operation, see [backends.StandardOps].
func (b *Builder) LessOrEqual(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLessOrEqual, lhs, rhs)
}

// GreaterThan is a binary operation, see [backends.StandardOps].
func (b *Builder) GreaterThan(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeGreaterThan, lhs, rhs)
}

// GreaterOrEqual is a binary operation, see [backends.StandardOps].
func (b *Builder) GreaterOrEqual(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeGreaterOrEqual, lhs, rhs)
}

// EqualTotalOrder compares with -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func (b *Builder) EqualTotalOrder(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeEqualTotalOrder, lhs, rhs)
}

// NotEqualTotalOrder compares with -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func (b *Builder) NotEqualTotalOrder(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeNotEqualTotalOrder, lhs, rhs)
}

// LessThanTotalOrder compares with -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func (b *Builder) LessThanTotalOrder(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLessThanTotalOrder, lhs, rhs)
}

// LessOrEqualTotalOrder compares with -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func (b *Builder) LessOrEqualTotalOrder(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeLessOrEqualTotalOrder, lhs, rhs)
}

// GreaterThanTotalOrder compares with -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func (b *Builder) GreaterThanTotalOrder(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeGreaterThanTotalOrder, lhs, rhs)
}

// GreaterOrEqualTotalOrder compares with -NaN < -Inf < … < -0 < +0 < … < +Inf < +NaN.
func (b *Builder) GreaterOrEqualTotalOrder(lhs, rhs backends.Op) (backends.Op, error) {
	return b.binary(backends.OpTypeGreaterOrEqualTotalOrder, lhs, rhs)
}
