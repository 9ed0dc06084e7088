package data

import (
	"fmt"
	"slices"
)

// OneHot encodes labels 0 to classes-1, integers of any dtype except uint64, as float32 with one more axis. Other
// labels are an error.
func OneHot(labels Array, classes int) (Array, error) {
	numbers, err := integers(labels)
	if err != nil {
		return Array{}, fmt.Errorf("data: one-hot: %w", err)
	}
	size, ok := sized(len(numbers), classes)
	if classes < 1 || !ok {
		return Array{}, fmt.Errorf("data: one-hot of %d labels in %d classes: expected at least 1, and at most %d numbers in all", len(numbers), classes, mostElements)
	}
	flat := make([]float32, size)
	for i, n := range numbers {
		if n < 0 || n >= int64(classes) {
			return Array{}, fmt.Errorf("data: one-hot: label %d is %d, expected 0 to %d", i, n, classes-1)
		}
		flat[i*classes+int(n)] = 1
	}
	return Array{flat, append(slices.Clone(labels.Dims), classes)}, nil
}

func integers(a Array) ([]int64, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	switch flat := a.Flat.(type) {
	case []int8:
		return widen(flat), nil
	case []int16:
		return widen(flat), nil
	case []int32:
		return widen(flat), nil
	case []int64:
		return flat, nil
	case []uint8:
		return widen(flat), nil
	case []uint16:
		return widen(flat), nil
	case []uint32:
		return widen(flat), nil
	}
	return nil, fmt.Errorf("labels are %s, expected int8 to int64 or uint8 to uint32", a.DType())
}

func widen[T int8 | int16 | int32 | uint8 | uint16 | uint32](from []T) []int64 {
	to := make([]int64, len(from))
	for i, v := range from {
		to[i] = int64(v)
	}
	return to
}
