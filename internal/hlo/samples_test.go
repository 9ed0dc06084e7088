package hlo_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// sample is one operation with random arguments.
type sample struct {
	name   string
	in     []array
	build  builds
	direct func(in []array) []array // nil: the pure-Go backend has it
	exact  bool                     // no rounding: the outputs may go into any operation
}

var (
	signedTypes   = []dtypes.DType{dtypes.Int8, dtypes.Int16, dtypes.Int32, dtypes.Int64}
	unsignedTypes = []dtypes.DType{dtypes.Uint8, dtypes.Uint16, dtypes.Uint32, dtypes.Uint64}
	floatTypes    = []dtypes.DType{dtypes.Float16, dtypes.BFloat16, dtypes.Float32, dtypes.Float64}
	complexTypes  = []dtypes.DType{dtypes.Complex64, dtypes.Complex128}
	boolType      = []dtypes.DType{dtypes.Bool}
	integerTypes  = slices.Concat(signedTypes, unsignedTypes)
	realTypes     = slices.Concat(integerTypes, floatTypes)
	numberTypes   = slices.Concat(realTypes, complexTypes)
	packedTypes   = []dtypes.DType{dtypes.Int2, dtypes.Int4, dtypes.Uint2, dtypes.Uint4}
	computedTypes = slices.Concat(numberTypes, boolType)
	allTypes      = slices.Concat(computedTypes, packedTypes)
)

// unaryTypes and binaryTypes list the dtypes of elementwise operations, independently of the package.
var unaryTypes = map[string][]dtypes.DType{
	"Abs": numberTypes, "Neg": slices.Concat(signedTypes, floatTypes, complexTypes), "Sign": numberTypes,
	"Ceil": floatTypes, "Floor": floatTypes, "Round": floatTypes, "Logistic": floatTypes, "Erf": floatTypes,
	"Sin": floatTypes, "Cos": floatTypes, "Tanh": floatTypes,
	"Sqrt": slices.Concat(floatTypes, complexTypes), "Rsqrt": slices.Concat(floatTypes, complexTypes),
	"Exp": slices.Concat(floatTypes, complexTypes), "Expm1": slices.Concat(floatTypes, complexTypes),
	"Log": slices.Concat(floatTypes, complexTypes), "Log1p": slices.Concat(floatTypes, complexTypes),
	"BitCount": integerTypes, "Clz": integerTypes, "BitwiseNot": integerTypes, "LogicalNot": boolType,
	"IsNaN": numberTypes, "IsFinite": slices.Concat(floatTypes, complexTypes),
	"Real": slices.Concat(floatTypes, complexTypes), "Imag": slices.Concat(floatTypes, complexTypes), "Conj": complexTypes,
	"Identity": allTypes,
}

var binaryTypes = map[string][]dtypes.DType{
	"Add": numberTypes, "Sub": numberTypes, "Mul": numberTypes, "Div": numberTypes, "Pow": numberTypes,
	"Rem": realTypes, "Atan2": floatTypes, "Max": slices.Concat(realTypes, boolType), "Min": slices.Concat(realTypes, boolType),
	"BitwiseAnd": integerTypes, "BitwiseOr": integerTypes, "BitwiseXor": integerTypes,
	"LogicalAnd": boolType, "LogicalOr": boolType, "LogicalXor": boolType,
	"ShiftLeft": integerTypes, "ShiftRightLogical": integerTypes, "ShiftRightArithmetic": integerTypes,
	"Equal": computedTypes, "NotEqual": computedTypes,
	"LessThan": slices.Concat(realTypes, boolType), "LessOrEqual": slices.Concat(realTypes, boolType),
	"GreaterThan": slices.Concat(realTypes, boolType), "GreaterOrEqual": slices.Concat(realTypes, boolType),
	"EqualTotalOrder": realTypes, "NotEqualTotalOrder": realTypes, "LessThanTotalOrder": realTypes,
	"LessOrEqualTotalOrder": realTypes, "GreaterThanTotalOrder": realTypes, "GreaterOrEqualTotalOrder": realTypes,
	"Complex": {dtypes.Float32, dtypes.Float64},
}

// source makes random choices. Operands with a free shape mostly come from pool, the outputs so far, so that operations
// form chains.
type source struct {
	*rand.Rand
	pool []shapes.Shape
}

func (r *source) shape(types []dtypes.DType, minRank, maxRank int) shapes.Shape {
	if len(r.pool) > 0 && r.IntN(4) > 0 {
		s := pick(r, r.pool)
		if slices.Contains(types, s.DType) && s.Rank() >= minRank && s.Rank() <= maxRank && s.Size() <= 300 {
			return s
		}
	}
	return shapes.Make(pick(r, types), drawDims(r, minRank, maxRank)...)
}

func pick[T any](r *source, list []T) T { return list[r.IntN(len(list))] }

func drawDims(r *source, minRank, maxRank int) []int {
	dims := make([]int, minRank+r.IntN(maxRank-minRank+1))
	for i := range dims {
		dims[i] = 1 + r.IntN(4)
	}
	return dims
}

// method calls an operation by its name.
func method(f compute.Function, name string, operands ...compute.Value) ([]compute.Value, error) {
	in := make([]reflect.Value, len(operands))
	for i, o := range operands {
		in[i] = reflect.ValueOf(&o).Elem()
	}
	out := reflect.ValueOf(f).MethodByName(name).Call(in)
	err, _ := out[1].Interface().(error)
	return []compute.Value{out[0].Interface()}, err
}

// hostLacks lists operations that the pure-Go backend lacks.
var hostLacks = map[string]bool{
	"Atan2": true,
	"Real":  true, "Imag": true, "Conj": true, "Complex": true,
	"EqualTotalOrder": true, "NotEqualTotalOrder": true, "LessThanTotalOrder": true, "LessOrEqualTotalOrder": true,
	"GreaterThanTotalOrder": true, "GreaterOrEqualTotalOrder": true,
}

func unarySample(r *source, name string) sample {
	shape := r.shape(unaryTypes[name], 0, 3)
	t := shape.DType
	low, high := -3.0, 3.0
	switch {
	case name == "Log1p" && !t.IsComplex():
		low = -0.9
	case (name == "Sqrt" || name == "Log" || name == "Rsqrt") && !t.IsComplex():
		low = 0.1
	case t.IsInt():
		low, high = -100, 100
	}
	x := draw(r, shape, low, high)
	if (name == "IsNaN" || name == "IsFinite") && !t.IsInt() {
		x.set(0, pick(r, []complex128{complex(math.NaN(), 0), complex(math.Inf(1), 0), complex(math.Inf(-1), 0), 1}))
	}
	out := t
	switch {
	case name == "IsNaN" || name == "IsFinite":
		out = dtypes.Bool
	case t.IsComplex() && (name == "Abs" || name == "Real" || name == "Imag"):
		out = t.RealDType()
	}
	s := sample{name: name, in: []array{x}, exact: tolerances[out] == 0 || name == "Identity" || name == "Neg",
		build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) { return method(f, name, in[0]) }}
	if hostLacks[name] || !hostHas(t) || t.IsInt() {
		s.direct = directUnary(name, out)
	}
	return s
}

func binarySample(r *source, name string) sample {
	shape := r.shape(binaryTypes[name], 0, 3)
	t, dims := shape.DType, shape.Dimensions
	low, high := -3.0, 3.0
	if t.IsInt() {
		low, high = -11, 11
	}
	x, y := draw(r, shapes.Make(t, dims...), low, high), draw(r, shapes.Make(t, dims...), low, high)
	switch {
	case name == "Div" || name == "Rem":
		y = draw(r, y.shape, 1, max(high, 2))
	case name == "Pow" && t.IsInt():
		y = draw(r, y.shape, 0, 3)
	case name == "Pow":
		x = draw(r, x.shape, 0.2, 3)
	case strings.HasPrefix(name, "Shift"):
		y = draw(r, y.shape, 0, float64(8*t.Size()))
	}
	if comparisons[name] != nil || strings.HasSuffix(name, "TotalOrder") {
		for i := range x.shape.Size() { // some are equal, some special
			if r.IntN(3) == 0 {
				copyElement(y, i, x, i)
			}
			if t.IsFloat() && r.IntN(4) == 0 {
				x.set(i, complex(pick(r, []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1)}), 0))
			}
		}
	}
	switch in := []*array{&x, &y}[r.IntN(2)]; r.IntN(4) { // repeated operands
	case 0:
		*in = array{shapes.Make(t), reflect.ValueOf(in.flat).Slice(0, 1).Interface()}
	case 1:
		if len(dims) > 0 {
			narrow := slices.Clone(dims)
			narrow[r.IntN(len(dims))] = 1
			s := shapes.Make(t, narrow...)
			*in = array{s, reflect.ValueOf(in.flat).Slice(0, s.Size()).Interface()}
		}
	}
	if name == "Complex" {
		s := sample{name: name, in: []array{x, y}, exact: true}
		s.build = func(f compute.Function, in []compute.Value) ([]compute.Value, error) { return method(f, name, in...) }
		s.direct = directBinary(name, dims, map[dtypes.DType]dtypes.DType{dtypes.Float32: dtypes.Complex64, dtypes.Float64: dtypes.Complex128}[t])
		return s
	}
	out := t
	if comparisons[name] != nil || strings.HasSuffix(name, "TotalOrder") {
		out = dtypes.Bool
	}
	s := sample{name: name, in: []array{x, y}, exact: tolerances[out] == 0,
		build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) { return method(f, name, in...) }}
	if hostLacks[name] || !hostHas(t) || t == dtypes.Bool || r.IntN(2) == 0 {
		s.direct = directBinary(name, dims, out)
	}
	return s
}
