package data

import (
	"fmt"
	"slices"
)

type element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// elements is what can be done with a slice whose type only [Array.Flat] knows. Positions are in elements and within
// range.
type elements interface {
	name() string
	len(flat any) int
	slice(flat any, i, j int) any
	closed(flat any, i, j int) any
	make(n int) any
	gather(to, flat any, rows []int, width int) // into the first rows of to
	concat(parts []any) any                     // all of this type
	// move makes images of dims [n, height, width, channels] of those of from: pixels gives the row and column that each row
	// and column of an image comes from, -1 for zeros.
	move(flat any, from, dims []int, pixels func(image int) (rows, columns []int)) any
}

// of has no fields, so that an elements value costs no allocation.
type of[T element] struct{}

func elementsOf(flat any) elements {
	switch flat.(type) {
	case []bool:
		return of[bool]{}
	case []int8:
		return of[int8]{}
	case []int16:
		return of[int16]{}
	case []int32:
		return of[int32]{}
	case []int64:
		return of[int64]{}
	case []uint8:
		return of[uint8]{}
	case []uint16:
		return of[uint16]{}
	case []uint32:
		return of[uint32]{}
	case []uint64:
		return of[uint64]{}
	case []float32:
		return of[float32]{}
	case []float64:
		return of[float64]{}
	}
	return nil
}

func (of[T]) name() string {
	var zero T
	return fmt.Sprintf("%T", zero)
}

func (of[T]) len(flat any) int { return len(flat.([]T)) }

func (of[T]) slice(flat any, i, j int) any { return flat.([]T)[i:j] }

// The capacity ends with the view, so that nobody appends into the rows behind it.
func (of[T]) closed(flat any, i, j int) any { return flat.([]T)[i:j:j] }

func (of[T]) make(n int) any { return make([]T, n) }

func (of[T]) gather(to, flat any, rows []int, width int) {
	from, rest := flat.([]T), to.([]T)
	if width == 1 { // labels: a call of copy for each costs more than the element
		for i, r := range rows {
			rest[i] = from[r]
		}
		return
	}
	for _, r := range rows {
		copy(rest, from[r*width:(r+1)*width])
		rest = rest[width:]
	}
}

func (of[T]) concat(parts []any) any {
	all := make([][]T, len(parts))
	for i, p := range parts {
		all[i] = p.([]T)
	}
	return slices.Concat(all...)
}

func (of[T]) move(flat any, from, dims []int, pixels func(image int) (rows, columns []int)) any {
	source := flat.([]T)
	h, w, channels := from[1], from[2], from[3]
	size, _ := product(dims)
	to := make([]T, size)
	rest := to
	for n := range dims[0] {
		rows, columns := pixels(n)
		image := source[n*h*w*channels:]
		for _, r := range rows {
			for _, c := range columns {
				if r >= 0 && c >= 0 {
					at := (r*w + c) * channels
					copy(rest[:channels], image[at:at+channels])
				}
				rest = rest[channels:]
			}
		}
	}
	return to
}
