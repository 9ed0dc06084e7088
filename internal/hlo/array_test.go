//lazo:norace
package hlo_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"reflect"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/dtypes/gotype"
	"github.com/gomlx/compute/shapes"
)

// array is a value on the host.
type array struct {
	shape shapes.Shape
	flat  any
}

func zeros(s shapes.Shape) array {
	return array{s, reflect.MakeSlice(reflect.SliceOf(s.DType.GoType()), s.Size(), s.Size()).Interface()}
}

func of[T gotype.Supported](dims []int, flat ...T) array {
	return array{shapes.Make(dtypes.FromGenericsType[T](), dims...), flat}
}

func (a array) element(i int) any { return reflect.ValueOf(a.flat).Index(i).Interface() }

// number returns an element; 64-bit integers lose digits.
func (a array) number(i int) complex128 {
	if a.shape.DType.IsPacked() {
		return complex(float64(int64(a.integer(i))), 0)
	}
	switch x := a.element(i).(type) {
	case bool:
		if x {
			return 1
		}
		return 0
	case float16.Float16:
		return complex(float64(x.Float32()), 0)
	case bfloat16.BFloat16:
		return complex(float64(x.Float32()), 0)
	case complex64:
		return complex128(x)
	case complex128:
		return x
	default:
		return complex(reflect.ValueOf(x).Convert(reflect.TypeFor[float64]()).Float(), 0)
	}
}

// integer returns an integer or a bool, sign-extended. A packed integer is in the low bits of a byte.
func (a array) integer(i int) uint64 {
	v := reflect.ValueOf(a.flat).Index(i)
	switch free := 64 - a.shape.DType.Bits(); {
	case a.shape.DType.IsPacked() && a.shape.DType.IsUnsigned():
		return v.Uint() << free >> free
	case a.shape.DType.IsPacked():
		return uint64(int64(v.Uint()) << free >> free)
	case v.Kind() == reflect.Bool && v.Bool():
		return 1
	case v.Kind() == reflect.Bool:
		return 0
	case v.CanInt():
		return uint64(v.Int())
	}
	return v.Uint()
}

func (a array) setInteger(i int, x uint64) {
	v := reflect.ValueOf(a.flat).Index(i)
	switch free := 64 - a.shape.DType.Bits(); {
	case v.Kind() == reflect.Bool:
		v.SetBool(x != 0)
	case v.CanInt():
		v.SetInt(int64(x) << free >> free)
	default:
		v.SetUint(x << free >> free)
	}
}

func (a array) set(i int, x complex128) {
	v := reflect.ValueOf(a.flat).Index(i)
	switch a.shape.DType {
	case dtypes.Float16:
		v.Set(reflect.ValueOf(float16.FromFloat32(float32(real(x)))))
	case dtypes.BFloat16:
		v.Set(reflect.ValueOf(bfloat16.FromFloat32(float32(real(x)))))
	case dtypes.Float32, dtypes.Float64:
		v.SetFloat(real(x))
	case dtypes.Complex64, dtypes.Complex128:
		v.SetComplex(x)
	default:
		a.setInteger(i, uint64(int64(real(x))))
	}
}

// draw fills an array: floats from low to high, integers too.
func draw(r *source, s shapes.Shape, low, high float64) array {
	a := zeros(s)
	for i := range s.Size() {
		x := complex(low+r.Float64()*(high-low), 0)
		if s.DType.IsComplex() {
			x += complex(0, low+r.Float64()*(high-low))
		}
		switch {
		case s.DType == dtypes.Bool:
			x = complex(float64(r.IntN(2)), 0)
		case s.DType.IsUnsigned():
			x = complex(math.Floor(math.Max(0, low)+r.Float64()*(high-math.Max(0, low))), 0)
		case s.DType.IsInt():
			x = complex(math.Floor(real(x)), 0)
		}
		a.set(i, x)
	}
	return a
}

// tolerances are relative, with 1 as the smallest magnitude.
var tolerances = map[dtypes.DType]float64{
	dtypes.Float16: 6e-3, dtypes.BFloat16: 4e-2, dtypes.Float32: 3e-5, dtypes.Float64: 1e-11,
	dtypes.Complex64: 3e-5, dtypes.Complex128: 1e-11,
}

func near(x, y complex128, tolerance float64) bool {
	if x == y || cmplx.IsNaN(x) && cmplx.IsNaN(y) {
		return true
	}
	if cmplx.IsInf(x) || cmplx.IsInf(y) || cmplx.IsNaN(x) || cmplx.IsNaN(y) {
		return math.IsInf(real(x), 1) == math.IsInf(real(y), 1) && math.IsInf(real(x), -1) == math.IsInf(real(y), -1) && cmplx.IsNaN(x) == cmplx.IsNaN(y)
	}
	return cmplx.Abs(x-y) <= tolerance*math.Max(1, math.Max(cmplx.Abs(x), cmplx.Abs(y)))
}

// differ returns a description of the difference, or "".
func differ(got, want array) string { return differBy(1, got, want) }

// differBy is differ with a multiple of the tolerance.
func differBy(times float64, got, want array) string {
	if !got.shape.Equal(want.shape) {
		return fmt.Sprintf("shape %s, want %s", got.shape, want.shape)
	}
	for i := range want.shape.Size() {
		same := false
		if tolerance, float := tolerances[want.shape.DType]; float {
			same = near(got.number(i), want.number(i), times*tolerance)
		} else {
			same = got.element(i) == want.element(i)
		}
		if !same {
			return fmt.Sprintf("element %d of %s is %v, want %v", i, want.shape, got.element(i), want.element(i))
		}
	}
	return ""
}

func copyElement(to array, i int, from array, j int) {
	reflect.ValueOf(to.flat).Index(i).Set(reflect.ValueOf(from.flat).Index(j))
}
