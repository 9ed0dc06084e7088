package data

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// Array is a multidimensional array. In a [Set] and a [Batch] the first axis is the examples.
type Array struct {
	// Flat is the elements in row-major order: []float32, []float64, []int8 to []int64, []uint8 to []uint64, []bool,
	// or []string. Steps refuse texts.
	Flat any
	// Dims are the axes' lengths, none for a scalar.
	Dims []int
}

// Check refuses, as steps, an invalid type of Flat, texts, and a length other than the product of Dims.
func (a Array) Check() error {
	if err := a.checkNumbers(); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	return nil
}

func (a Array) checkNumbers() error {
	err := a.check()
	if _, texts := a.Flat.([]string); err == nil && texts {
		return errors.New("it holds texts, and a step takes numbers: convert them by a tables.Preparation, or remove the field by data.Drop")
	}
	return err
}

func (a Array) check() error { return arrays.Check(a.Flat, a.Dims) }

// Len is the length of the first axis, 1 for a scalar.
func (a Array) Len() int {
	if len(a.Dims) == 0 {
		return 1
	}
	return a.Dims[0]
}

// Size is the number of elements, 0 for an invalid type.
func (a Array) Size() int {
	_, n := arrays.Type(a.Flat)
	return n
}

// DType is the Go name of the element type, as "float32", "" if invalid.
func (a Array) DType() string {
	t, _ := arrays.Type(a.Flat)
	return t
}

// Slice returns a view of rows i to j-1, or an Array that [Array.Check] refuses.
func (a Array) Slice(i, j int) Array {
	if len(a.Dims) == 0 || a.check() != nil || i < 0 || j < i || j > a.Dims[0] {
		return Array{}
	}
	return a.slice(i, j, dimsOf(a, j-i))
}

// Gather returns a copy of the given rows, with [Array.Slice]'s errors.
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

// dims are the result's.

func (a Array) slice(i, j int, dims []int) Array {
	width := a.width()
	return Array{arrays.Of(a.Flat).Slice(a.Flat, i*width, j*width), dims}
}

func (a Array) gather(rows, dims []int) Array {
	kind, width := arrays.Of(a.Flat), a.width()
	to := kind.Make(len(rows) * width)
	kind.Gather(to, a.Flat, rows, width)
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
