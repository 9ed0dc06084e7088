package safetensors

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// Only this file uses unsafe: a model's copy to view it as bytes would double its memory.

// Element is a Go type whose values have the file's layout on little-endian machines. F16, BF16 and 8-bit floats are
// their bits as uint16 and uint8, or types based on these.
type Element interface {
	~bool | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Bytes returns values as a file's bytes, on little-endian machines as a view, elsewhere as a copy.
func Bytes[T Element](values []T) []byte {
	data := memory(values)
	if !littleEndian {
		data = slices.Clone(data)
		swapBytes[T](data)
	}
	return data
}

// Values returns a file's bytes as values, on little-endian machines as a view if data is aligned for T, as that of
// [Reader.Read] is; otherwise as a copy. T must fit the DType. It is an error if data is not a whole number of values,
// or a bool's byte neither 0 nor 1.
func Values[T Element](data []byte) ([]T, error) {
	var zero T
	width := int(unsafe.Sizeof(zero))
	if len(data)%width != 0 {
		return nil, fmt.Errorf("safetensors: %d bytes are not a whole number of %T of %d bytes", len(data), zero, width)
	}
	if reflect.TypeFor[T]().Kind() == reflect.Bool {
		for i, b := range data {
			if b > 1 { // undefined behaviour in Go
				return nil, fmt.Errorf("safetensors: byte %d of %d is 0x%02x, expected 0 or 1 for a bool", i, len(data), b)
			}
		}
	}
	if len(data) == 0 {
		return []T{}, nil
	}
	start := unsafe.Pointer(unsafe.SliceData(data))
	if littleEndian && uintptr(start)%unsafe.Alignof(zero) == 0 {
		// Each bit pattern is a value of T.
		return unsafe.Slice((*T)(start), len(data)/width), nil
	}
	values := make([]T, len(data)/width)
	copied := memory(values)
	copy(copied, data)
	if !littleEndian {
		swapBytes[T](copied)
	}
	return values, nil
}

// A slice without pointers may be viewed as bytes, which keep it alive.
func memory[T Element](values []T) []byte {
	if len(values) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
}

func swapBytes[T Element](data []byte) {
	width := int(unsafe.Sizeof(*new(T)))
	if reflect.TypeFor[T]().Kind() == reflect.Complex64 {
		width /= 2
	}
	for word := range slices.Chunk(data, width) {
		slices.Reverse(word)
	}
}
