package safetensors

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// This is the one file of the package with unsafe: the elements of a file are little endian, as those in the memory of
// nearly every machine, and a copy of a model only to call it bytes would double what it takes.

// Element is a Go type with values that lie in memory as in a file, on a little-endian machine. F16, BF16 and the types
// of 8 bits that Go does not have go as their bits, in uint16 and uint8 or types of these.
type Element interface {
	~bool | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Bytes gives values as the bytes of a file. On a little-endian machine they are the memory of values, so a change of
// one is a change of the other; elsewhere they are a copy.
func Bytes[T Element](values []T) []byte {
	data := memory(values)
	if !littleEndian {
		data = slices.Clone(data)
		swapBytes[T](data)
	}
	return data
}

// Values gives the bytes of a file as values. On a little-endian machine they are the memory of data where that is
// aligned for T, as what [Reader.Read] gives always is; elsewhere they are a copy.
//
// It is an error if data is no whole number of values or, for a bool, if a byte is neither 0 nor 1. Which T fits to a
// DType is for the caller to know.
func Values[T Element](data []byte) ([]T, error) {
	var zero T
	width := int(unsafe.Sizeof(zero))
	if len(data)%width != 0 {
		return nil, fmt.Errorf("safetensors: %d bytes are no whole number of %T of %d bytes", len(data), zero, width)
	}
	if reflect.TypeFor[T]().Kind() == reflect.Bool {
		for i, b := range data {
			if b > 1 { // Go may do anything with such a bool
				return nil, fmt.Errorf("safetensors: byte %d of %d is 0x%02x, expected 0 or 1 for a bool", i, len(data), b)
			}
		}
	}
	if len(data) == 0 {
		return []T{}, nil
	}
	start := unsafe.Pointer(unsafe.SliceData(data))
	if littleEndian && uintptr(start)%unsafe.Alignof(zero) == 0 {
		// Aligned, long enough, and every pattern of bits is a value of T.
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

// memory is what values lie in. The bytes of a slice without pointers may be looked at one by one, and live as long as
// it does.
func memory[T Element](values []T) []byte {
	if len(values) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
}

// swapBytes turns elements of T from big endian to little endian or back.
func swapBytes[T Element](data []byte) {
	width := int(unsafe.Sizeof(*new(T)))
	if reflect.TypeFor[T]().Kind() == reflect.Complex64 {
		width /= 2 // two numbers, in the same order
	}
	for word := range slices.Chunk(data, width) {
		slices.Reverse(word)
	}
}
