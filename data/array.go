package data

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/lazo-ml/lazo/internal/dtype"
)

// Array is numbers, truth values or texts with dimensions. In a [Set] and a [Batch] the first axis counts the examples.
//
// An Array is a view: copying one copies no elements.
type Array struct {
	// Flat holds the elements, the last axis running fastest: []float32, []float64, []int8 to []int64, []uint8 to
	// []uint64, or []bool. []string holds texts, as [CSV.Texts] reads them: a [Set] keeps, splits and deals them out as
	// it does numbers, but no step takes them; a [Preparation] makes numbers of them.
	Flat any
	// Dims are the lengths of the axes; none for a single element.
	Dims []int
}

// Check returns an error unless a step can take the array: Flat has one of the element types, but no texts, and exactly
// as many elements as Dims say.
func (a Array) Check() error {
	if err := a.checkNumbers(); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	return nil
}

func (a Array) checkNumbers() error {
	err := a.check()
	if _, texts := a.Flat.([]string); err == nil && texts {
		return errors.New("it holds texts, and a step takes numbers: make numbers of them by a data.Preparation, or leave the field out by data.Drop")
	}
	return err
}

// typeOf is the name of the type of the elements, "" if an array cannot have it, and their number.
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

// Len is the length of the first axis; 1 without axes.
func (a Array) Len() int {
	if len(a.Dims) == 0 {
		return 1
	}
	return a.Dims[0]
}

// Size is the number of elements; 0 if Flat is of no valid type.
func (a Array) Size() int {
	_, n := typeOf(a.Flat)
	return n
}

// DType names the type of the elements as Go does ("float32", "bool"); "" if Flat is of no valid type.
func (a Array) DType() string {
	t, _ := typeOf(a.Flat)
	return t
}

// Slice is rows i to j-1 of the first axis, without a copy. For bounds out of range, or an array that fails
// [Array.Check], it is the zero Array, which Check refuses.
func (a Array) Slice(i, j int) Array {
	if len(a.Dims) == 0 || a.check() != nil || i < 0 || j < i || j > a.Dims[0] {
		return Array{}
	}
	return a.slice(i, j, dimsOf(a, j-i))
}

// Gather copies the given rows of the first axis, in that order, into an array of its own. For a row out of range, or
// an array that fails [Array.Check], it is the zero Array, which Check refuses.
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

// slice and gather do without checks; dims are those of the result.

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

// width is the number of elements in a row.
func (a Array) width() int {
	width := 1
	for _, d := range a.Dims[1:] {
		width *= d
	}
	return width
}

// dimsOf are the dims of a with another length of the first axis.
func dimsOf(a Array, rows int) []int {
	dims := make([]int, len(a.Dims))
	copy(dims, a.Dims)
	dims[0] = rows
	return dims
}

// product multiplies lengths; not ok for a negative one, or when the lengths other than 0 overflow an int (so that no
// part of the product does, either).
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

// mostElements is how many elements an array is made with, at most. More is a mistaken size, for which Go would end the
// process.
const mostElements = 1 << 34

// sized is product for an array that is to be made.
func sized(dims ...int) (size int, ok bool) {
	size, ok = product(dims)
	return size, ok && size <= mostElements
}
