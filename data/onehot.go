package data

import (
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// OneHot encodes labels 0 to classes-1, integers of any dtype except uint64, as float32 with one more axis. Other
// labels are an error.
func OneHot(labels Array, classes int) (Array, error) {
	numbers, err := labels.integers()
	if err != nil {
		return Array{}, fmt.Errorf("data: one-hot: %w", err)
	}
	size, ok := arrays.Size(len(numbers), classes)
	if classes < 1 || !ok {
		return Array{}, fmt.Errorf("data: one-hot of %d labels in %d classes: expected at least 1, and at most %d numbers in all", len(numbers), classes, arrays.MostElements)
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

func (a Array) integers() ([]int64, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return arrays.Integers(a.Flat)
}
