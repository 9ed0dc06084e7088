package data

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/lazo-ml/lazo/internal/dtype"
)

// Array is a multidimensional array. In a [Set] and a [Batch] the first axis is the examples. A copy shares the
// elements.
type Array struct {
	// Flat is the elements in row-major order: []float32, []float64, []int8 to []int64, []uint8 to []uint64, []bool, or
	// []string. Steps refuse texts; a [Preparation] converts them.
	Flat any
	// Dims are the lengths of the axes, none for a scalar.
	Dims []int
}

// Check refuses, as steps do, an invalid type of Flat, texts, and a length other than the product of Dims.
func (a Array) Check() error {
	if err := a.checkNumbers(); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	return nil
}

func (a Array) checkNumbers() error {
	err := a.check()
	if _, texts := a.Flat.([]string); err == nil && texts {
		return errors.New("it holds texts, and a step takes numbers: convert them by a data.Preparation, or remove the field by data.Drop")
	}
	return err
}

func typeOf(flat any) (string, int) {
	if texts, ok := flat.([]string); ok {
		return "string", len(texts)
	}
	t, n := dtype.Of(flat)
	return t.String(), n
}

func (a Array) check() error {
	t, got := typeOf(a.Flat)
	if a.Flat == nil {
		return errors.New("the array has no elements (Flat is nil)")
	}
	if t == "" {
		return fmt.Errorf("the array's Flat is %T, expected a slice of float32, float64, int8 to int64, uint8 to uint64, bool or string", a.Flat)
	}
	size, ok := product(a.Dims)
	if !ok {
		return fmt.Errorf("dims %v: expected lengths of 0 and up that multiply to less than 2^63", a.Dims)
	}
	if got != size {
		return fmt.Errorf("dims %v mean %d elements, but Flat has %d", a.Dims, size, got)
	}
	return nil
}

// Len returns the length of the first axis, 1 for a scalar.
func (a Array) Len() int {
	if len(a.Dims) == 0 {
		return 1
	}
	return a.Dims[0]
}

// Size returns the number of elements, 0 for an invalid type.
func (a Array) Size() int {
	_, n := typeOf(a.Flat)
	return n
}

// DType returns the Go name of the element type, as "float32", or "" if it is invalid.
func (a Array) DType() string {
	t, _ := typeOf(a.Flat)
	return t
}

// Slice returns a view of rows i to j-1, or for invalid arguments the zero Array, which [Array.Check] refuses.
func (a Array) Slice(i, j int) Array {
	if len(a.Dims) == 0 || a.check() != nil || i < 0 || j < i || j > a.Dims[0] {
		return Array{}
	}
	return a.slice(i, j, dimsOf(a, j-i))
}

// Gather returns a copy of the given rows. Errors are those of [Array.Slice].
func (a Array) Gather(rows []int) Array {
	if len(a.Dims) == 0 || a.check() != nil {
		return Array{}
	}
	for _, r := range rows {
		if r < 0 || r >= a.Dims[0] {
			return Array{}
		}
	}
	return a.gather(rows, dimsOf(a, len(rows)))
}

// slice and gather do not check arguments. dims are the result's.

func (a Array) slice(i, j int, dims []int) Array {
	width := a.width()
	return Array{elementsOf(a.Flat).slice(a.Flat, i*width, j*width), dims}
}

func (a Array) gather(rows, dims []int) Array {
	kind, width := elementsOf(a.Flat), a.width()
	to := kind.make(len(rows) * width)
	kind.gather(to, a.Flat, rows, width)
	return Array{to, dims}
}

func (a Array) width() int {
	width := 1
	for _, d := range a.Dims[1:] {
		width *= d
	}
	return width
}

func dimsOf(a Array, rows int) []int {
	dims := make([]int, len(a.Dims))
	copy(dims, a.Dims)
	dims[0] = rows
	return dims
}

// product is not ok if a length is negative or the nonzero ones overflow.
func product(dims []int) (size int, ok bool) {
	all, zero := uint64(1), false
	for _, d := range dims {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			zero = true
			continue
		}
		high, low := bits.Mul64(all, uint64(d))
		if high != 0 || low > maxInt {
			return 0, false
		}
		all = low
	}
	if zero {
		return 0, true
	}
	return int(all), true
}

const maxInt = uint64(^uint(0) >> 1)

// mostElements limits allocations: above it, Go would end the process.
const mostElements = 1 << 34

func sized(dims ...int) (size int, ok bool) {
	size, ok = product(dims)
	return size, ok && size <= mostElements
}
