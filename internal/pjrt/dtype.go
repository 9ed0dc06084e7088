package pjrt

import (
	"fmt"
	"slices"
	"unsafe"
)

// DType is an array's dtype, numbered as in PJRT_Buffer_Type and GoMLX.
type DType int

// On the host, elements of less than a byte take its low bits.
const (
	Invalid DType = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	Float32
	Float64
	BFloat16
	Complex64
	Complex128
	F8E5M2
	F8E4M3FN
	F8E4M3B11FNUZ
	F8E5M2FNUZ
	F8E4M3FNUZ
	Int4
	Uint4
	Token
	Int2
	Uint2
	F8E4M3
	F8E3M4
	F8E8M0FNU
	F4E2M1FN
)

const maxDims = 64 // LAZO_MAX_DIMS

// name is StableHLO's, size the bytes on the host, primitive XLA's number.
var dtypes = []struct {
	name      string
	size      int
	primitive uint64
}{
	{"invalid", 0, 0}, {"i1", 1, 1}, {"i8", 1, 2}, {"i16", 2, 3}, {"i32", 4, 4}, {"i64", 8, 5},
	{"ui8", 1, 6}, {"ui16", 2, 7}, {"ui32", 4, 8}, {"ui64", 8, 9},
	{"f16", 2, 10}, {"f32", 4, 11}, {"f64", 8, 12}, {"bf16", 2, 16}, {"complex<f32>", 8, 15}, {"complex<f64>", 16, 18},
	{"f8E5M2", 1, 19}, {"f8E4M3FN", 1, 20}, {"f8E4M3B11FNUZ", 1, 23}, {"f8E5M2FNUZ", 1, 24}, {"f8E4M3FNUZ", 1, 25},
	{"i4", 1, 21}, {"ui4", 1, 22}, {"token", 0, 17}, {"i2", 1, 26}, {"ui2", 1, 27},
	{"f8E4M3", 1, 28}, {"f8E3M4", 1, 29}, {"f8E8M0FNU", 1, 33}, {"f4E2M1FN", 1, 32},
}

func (d DType) String() string {
	if d < 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype %d", int(d))
	}
	return dtypes[d].name
}

func (d DType) Size() int {
	if d < 0 || int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// A device may store several elements in a byte.
func (d DType) packed() bool {
	return slices.Contains([]DType{Int4, Uint4, Int2, Uint2, F4E2M1FN}, d)
}

// Shape is an array's dtype and dimensions. Do not change a shared one.
type Shape struct {
	DType DType
	Dims  []int // none for a scalar
}

func (s Shape) String() string {
	text := ""
	for _, d := range s.Dims {
		text += fmt.Sprintf("%dx", d)
	}
	return text + s.DType.String()
}

func (s Shape) Equal(other Shape) bool {
	return s.DType == other.DType && slices.Equal(s.Dims, other.Dims)
}

// Size returns the array's bytes on the host, or an error for invalid shapes.
func (s Shape) Size() (int, error) {
	size := s.DType.Size()
	if size == 0 || len(s.Dims) > maxDims {
		return 0, fmt.Errorf("pjrt: shape %v: expected a type with elements, and at most %d dimensions", s, maxDims)
	}
	empty := false
	for _, d := range s.Dims {
		if d < 0 {
			return 0, fmt.Errorf("pjrt: shape %v has a negative dimension", s)
		}
		empty = empty || d == 0
	}
	if empty {
		return 0, nil
	}
	for _, d := range s.Dims {
		if size > int(^uint(0)>>1)/d {
			return 0, fmt.Errorf("pjrt: shape %v has more bytes than an int counts", s)
		}
		size *= d
	}
	return size, nil
}

type Number interface {
	~bool | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Bytes views a slice's memory.
func Bytes[T Number](values []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(one)))
}
