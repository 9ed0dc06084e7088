package data

import (
	"slices"

	"github.com/lazo-ml/lazo/internal/dtype"
)

type element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | string
}

// elements is what can be done with an [Array.Flat] of one type. Positions are in elements and within
// range.
type elements interface {
	len(flat any) int
	slice(flat any, i, j int) any
	is(flat any, i, j int, part any) bool // whether part is that slice of the same memory
	make(n int) any
	gather(to, flat any, rows []int, width int) // into the first rows of to
	concat(parts []any) any                     // all of this type
	// move makes images of dims [n, height, width, channels] of those of from: pixels gives the row and column that
	// each row and column of an image comes from, -1 for zeros.
	move(flat any, from, dims []int, pixels func(image int) (rows, columns []int)) any
}

// of has no fields, so that an elements value costs no allocation.
type of[T element] struct{}

func elementsOf(flat any) elements {
	if t, _ := dtype.Of(flat); t != 0 {
		return allElements[t]
	}
	return of[string]{}
}

var allElements = [dtype.Count]elements{
	dtype.Bool: of[bool]{},
	dtype.Int8: of[int8]{}, dtype.Int16: of[int16]{}, dtype.Int32: of[int32]{}, dtype.Int64: of[int64]{},
	dtype.Uint8: of[uint8]{}, dtype.Uint16: of[uint16]{}, dtype.Uint32: of[uint32]{}, dtype.Uint64: of[uint64]{},
	dtype.Float32: of[float32]{}, dtype.Float64: of[float64]{},
}

func (of[T]) len(flat any) int { return len(flat.([]T)) }

// The capacity ends with the view, so that an append does not write into the rows behind it.
func (of[T]) slice(flat any, i, j int) any { return flat.([]T)[i:j:j] }

func (of[T]) is(flat any, i, j int, part any) bool {
	p, ok := part.([]T)
	return ok && len(p) == j-i && (i == j || &p[0] == &flat.([]T)[i])
}

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
