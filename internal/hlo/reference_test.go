package hlo_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
)

// One operation at a time: GoMLX's backend deadlocks when it runs them in parallel.
var pureGo = sync.OnceValues(func() (compute.Backend, error) { return gobackend.New("ops_sequential") })

// builds is a part of a program.
type builds func(f compute.Function, in []compute.Value) ([]compute.Value, error)

func one(op compute.Value, err error) ([]compute.Value, error) { return []compute.Value{op}, err }

// refer computes the expected outputs: with GoMLX's pure-Go backend if it has the operation and the dtype, else
// directly.
func refer(in []array, build builds, direct func(in []array) []array) (want []array, by string, err error) {
	on, err := pureGo()
	if err != nil {
		return nil, "", err
	}
	if direct == nil {
		want, err = runGuarded(on, in, build)
		return want, "pure Go", err
	}
	return direct(in), "direct", nil
}

func runGuarded(on compute.Backend, in []array, build builds) (want []array, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return run(on, in, build)
}

// hostHas reports whether the pure-Go backend computes with a dtype.
func hostHas(t dtypes.DType) bool { return !t.IsComplex() && t != dtypes.Float16 && !t.IsPacked() }

// unaryFloat are the operations on floats and complex numbers.
var unaryFloat = map[string]func(x complex128) complex128{
	"Abs":      func(x complex128) complex128 { return complex(cmplx.Abs(x), 0) },
	"Neg":      func(x complex128) complex128 { return -x },
	"Sqrt":     cmplx.Sqrt,
	"Rsqrt":    func(x complex128) complex128 { return 1 / cmplx.Sqrt(x) },
	"Exp":      cmplx.Exp,
	"Expm1":    func(x complex128) complex128 { return cmplx.Exp(x) - 1 },
	"Log":      cmplx.Log,
	"Log1p":    func(x complex128) complex128 { return cmplx.Log(1 + x) },
	"Identity": func(x complex128) complex128 { return x },
	"Conj":     cmplx.Conj,
	"Real":     func(x complex128) complex128 { return complex(real(x), 0) },
	"Imag":     func(x complex128) complex128 { return complex(imag(x), 0) },
	"Sign": func(x complex128) complex128 {
		if x == 0 {
			return 0
		}
		return x / complex(cmplx.Abs(x), 0)
	},
	"Ceil":     onReal(math.Ceil),
	"Floor":    onReal(math.Floor),
	"Round":    onReal(math.RoundToEven),
	"Logistic": onReal(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	"Erf":      onReal(math.Erf),
	"Sin":      onReal(math.Sin),
	"Cos":      onReal(math.Cos),
	"Tanh":     onReal(math.Tanh),
	"IsNaN":    func(x complex128) complex128 { return truth(cmplx.IsNaN(x)) },
	"IsFinite": func(x complex128) complex128 { return truth(!cmplx.IsNaN(x) && !cmplx.IsInf(x)) },
}

func onReal(f func(float64) float64) func(complex128) complex128 {
	return func(x complex128) complex128 { return complex(f(real(x)), 0) }
}

func truth(b bool) complex128 {
	if b {
		return 1
	}
	return 0
}

// unaryInteger are the operations on sign-extended integers of size bits.
var unaryInteger = map[string]func(x uint64, size int) uint64{
	"Abs":        func(x uint64, _ int) uint64 { return choose(int64(x) < 0, -x, x) },
	"Neg":        func(x uint64, _ int) uint64 { return -x },
	"BitCount":   func(x uint64, size int) uint64 { return uint64(bits.OnesCount64(x << (64 - size))) },
	"Clz":        func(x uint64, size int) uint64 { return uint64(min(size, bits.LeadingZeros64(x<<(64-size)))) },
	"BitwiseNot": func(x uint64, _ int) uint64 { return ^x },
	"LogicalNot": func(x uint64, _ int) uint64 { return x ^ 1 },
	"IsNaN":      func(uint64, int) uint64 { return 0 },
	"Identity":   func(x uint64, _ int) uint64 { return x },
	"Sign": func(x uint64, _ int) uint64 {
		return uint64(min(1, max(-1, int64(x))))
	},
}

var binaryFloat = map[string]func(x, y complex128) complex128{
	"Add": func(x, y complex128) complex128 { return x + y },
	"Sub": func(x, y complex128) complex128 { return x - y },
	"Mul": func(x, y complex128) complex128 { return x * y },
	"Div": func(x, y complex128) complex128 { return x / y },
	"Pow": func(x, y complex128) complex128 {
		if imag(x) == 0 && imag(y) == 0 {
			return complex(math.Pow(real(x), real(y)), 0)
		}
		return cmplx.Pow(x, y)
	},
	"Atan2":   func(x, y complex128) complex128 { return complex(math.Atan2(real(x), real(y)), 0) },
	"Rem":     func(x, y complex128) complex128 { return complex(math.Mod(real(x), real(y)), 0) },
	"Max":     func(x, y complex128) complex128 { return complex(math.Max(real(x), real(y)), 0) },
	"Min":     func(x, y complex128) complex128 { return complex(math.Min(real(x), real(y)), 0) },
	"Complex": func(x, y complex128) complex128 { return complex(real(x), real(y)) },
}

// comparisons map the sign of x - y to the result.
var comparisons = map[string]func(sign int) bool{
	"Equal":          func(s int) bool { return s == 0 },
	"NotEqual":       func(s int) bool { return s != 0 },
	"LessThan":       func(s int) bool { return s < 0 },
	"LessOrEqual":    func(s int) bool { return s <= 0 },
	"GreaterThan":    func(s int) bool { return s > 0 },
	"GreaterOrEqual": func(s int) bool { return s >= 0 },
}

var binaryInteger = map[string]func(x, y uint64, size int, signed bool) uint64{
	"BitwiseAnd": func(x, y uint64, _ int, _ bool) uint64 { return x & y },
	"BitwiseOr":  func(x, y uint64, _ int, _ bool) uint64 { return x | y },
	"BitwiseXor": func(x, y uint64, _ int, _ bool) uint64 { return x ^ y },
	"LogicalAnd": func(x, y uint64, _ int, _ bool) uint64 { return x & y },
	"LogicalOr":  func(x, y uint64, _ int, _ bool) uint64 { return x | y },
	"LogicalXor": func(x, y uint64, _ int, _ bool) uint64 { return x ^ y },
	"Add":        func(x, y uint64, _ int, _ bool) uint64 { return x + y },
	"Sub":        func(x, y uint64, _ int, _ bool) uint64 { return x - y },
	"Mul":        func(x, y uint64, _ int, _ bool) uint64 { return x * y },
	"Max":        func(x, y uint64, _ int, s bool) uint64 { return choose(below(x, y, s), y, x) },
	"Min":        func(x, y uint64, _ int, s bool) uint64 { return choose(below(x, y, s), x, y) },
	"Div": func(x, y uint64, _ int, s bool) uint64 {
		if s {
			return uint64(int64(x) / int64(y))
		}
		return x / y
	},
	"Rem": func(x, y uint64, _ int, s bool) uint64 {
		if s {
			return uint64(int64(x) % int64(y))
		}
		return x % y
	},
	"Pow": func(x, y uint64, _ int, _ bool) uint64 {
		p := uint64(1)
		for range y {
			p *= x
		}
		return p
	},
	"ShiftLeft": func(x, y uint64, size int, _ bool) uint64 { return choose(y < uint64(size), x<<y, 0) },
	"ShiftRightLogical": func(x, y uint64, size int, _ bool) uint64 {
		return choose(y < uint64(size), x<<(64-size)>>(64-size)>>y, 0)
	},
	"ShiftRightArithmetic": func(x, y uint64, size int, _ bool) uint64 {
		return uint64(int64(x<<(64-size)) >> (64 - size) >> min(y, 63))
	},
}

func below(x, y uint64, signed bool) bool {
	if signed {
		return int64(x) < int64(y)
	}
	return x < y
}

func choose[T any](c bool, x, y T) T {
	if c {
		return x
	}
	return y
}

func signed(t dtypes.DType) bool { return t.IsInt() && !t.IsUnsigned() }

// directUnary computes an elementwise operation by its name.
func directUnary(name string, output dtypes.DType) func(in []array) []array {
	return func(in []array) []array {
		x, out := in[0], zeros(shapes.Make(output, in[0].shape.Dimensions...))
		for i := range x.shape.Size() {
			if x.shape.DType.IsFloat() || x.shape.DType.IsComplex() {
				out.set(i, unaryFloat[name](x.number(i)))
			} else {
				out.setInteger(i, unaryInteger[name](x.integer(i), 8*x.shape.DType.Size()))
			}
		}
		return []array{out}
	}
}

// spread broadcasts a to dims.
func spread(a array, dims []int) array {
	out := zeros(shapes.Make(a.shape.DType, dims...))
	for i := range out.shape.Size() {
		at, rest, stride := 0, i, 1
		for axis := len(dims) - 1; axis >= 0; axis-- {
			k := rest % dims[axis]
			rest /= dims[axis]
			if a.shape.Rank() > 0 {
				if a.shape.Dimensions[axis] > 1 {
					at += k * stride
				}
				stride *= a.shape.Dimensions[axis]
			}
		}
		copyElement(out, i, a, at)
	}
	return out
}

func directBinary(name string, dims []int, output dtypes.DType) func(in []array) []array {
	return func(in []array) []array {
		x, y := spread(in[0], dims), spread(in[1], dims)
		t := x.shape.DType
		out := zeros(shapes.Make(output, dims...))
		for i := range out.shape.Size() {
			kind, total := strings.CutSuffix(name, "TotalOrder")
			compare, isComparison := comparisons[kind]
			switch {
			case isComparison:
				out.setInteger(i, uint64(real(truth(compareElements(x, y, i, kind, total, compare)))))
			case t.IsFloat() || t.IsComplex():
				out.set(i, binaryFloat[name](x.number(i), y.number(i)))
			default:
				out.setInteger(i, binaryInteger[name](x.integer(i), y.integer(i), 8*t.Size(), signed(t)))
			}
		}
		return []array{out}
	}
}

func compareElements(x, y array, i int, kind string, total bool, compare func(int) bool) bool {
	t := x.shape.DType
	switch {
	case t.IsComplex():
		return compare(choose(x.number(i) == y.number(i), 0, 1))
	case t.IsFloat() && total:
		order := func(f float64) int64 {
			bits := int64(math.Float64bits(f))
			return bits ^ int64(uint64(bits>>63)>>1)
		}
		p, q := order(real(x.number(i))), order(real(y.number(i)))
		return compare(choose(p < q, -1, choose(p > q, 1, 0)))
	case t.IsFloat():
		p, q := real(x.number(i)), real(y.number(i))
		if math.IsNaN(p) || math.IsNaN(q) {
			return kind == "NotEqual"
		}
		return compare(choose(p < q, -1, choose(p > q, 1, 0)))
	}
	p, q := x.integer(i), y.integer(i)
	return compare(choose(below(p, q, signed(t)), -1, choose(p == q, 0, 1)))
}
