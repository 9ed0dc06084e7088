// Package arrays checks, slices and copies flat arrays of any element type, for package data and its readers of files.
package arrays

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/dtype"
)

type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | string
}

// Check refuses an invalid type of flat, and a length other than the product of dims.
func Check(flat any, dims []int) error {
	t, got := Type(flat)
	if flat == nil {
		return errors.New("the array has no elements (Flat is nil)")
	}
	if t == "" {
		return fmt.Errorf("the array's Flat is %T, expected a slice of float32, float64, int8 to int64, uint8 to uint64, bool or string", flat)
	}
	size, ok := product(dims)
	if !ok {
		return fmt.Errorf("dims %v: expected lengths of 0 and up that multiply to less than 2^63", dims)
	}
	if got != size {
		return fmt.Errorf("dims %v mean %d elements, but Flat has %d", dims, size, got)
	}
	return nil
}

// Type returns the element type's Go name, "" if invalid, and the number of elements.
func Type(flat any) (string, int) {
	if texts, ok := flat.([]string); ok {
		return "string", len(texts)
	}
	t, n := dtype.Of(flat)
	return t.String(), n
}

// MostElements limits allocations: above it, Go would end the process.
const MostElements = 1 << 34

// Size returns the product of dims, not ok if a length is negative or the product above MostElements.
func Size(dims ...int) (size int, ok bool) {
	size, ok = product(dims)
	return size, ok && size <= MostElements
}

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

type Elements interface {
	Len(flat any) int
	Slice(flat any, i, j int) any
	Is(flat any, i, j int, part any) bool
	Make(n int) any
	Gather(to, flat any, rows []int, width int)
	Concat(parts []any) any
}

func Of(flat any) Elements {
	if t, _ := dtype.Of(flat); t != 0 {
		return all[t]
	}
	return of[string]{}
}

// of has no fields: an Elements value does not allocate.
type of[T Element] struct{}

var all = [dtype.Count]Elements{
	dtype.Bool: of[bool]{},
	dtype.Int8: of[int8]{}, dtype.Int16: of[int16]{}, dtype.Int32: of[int32]{}, dtype.Int64: of[int64]{},
	dtype.Uint8: of[uint8]{}, dtype.Uint16: of[uint16]{}, dtype.Uint32: of[uint32]{}, dtype.Uint64: of[uint64]{},
	dtype.Float32: of[float32]{}, dtype.Float64: of[float64]{},
}

func (of[T]) Len(flat any) int { return len(flat.([]T)) }

// The capacity ends with the view: an append does not overwrite the next rows.
func (of[T]) Slice(flat any, i, j int) any { return flat.([]T)[i:j:j] }

func (of[T]) Is(flat any, i, j int, part any) bool {
	p, ok := part.([]T)
	return ok && len(p) == j-i && (i == j || &p[0] == &flat.([]T)[i])
}

func (of[T]) Make(n int) any { return make([]T, n) }

func (of[T]) Gather(to, flat any, rows []int, width int) {
	from, rest := flat.([]T), to.([]T)
	if width == 1 { // a call of copy costs more than the element
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

func (of[T]) Concat(parts []any) any {
	lists := make([][]T, len(parts))
	for i, p := range parts {
		lists[i] = p.([]T)
	}
	return slices.Concat(lists...)
}

// ParseFloat parses a decimal number, nan or inf: not Go's underscores and hexadecimal digits. Its error is a
// [strconv.NumError].
func ParseFloat(text string, bits int) (float64, error) {
	if strings.ContainsAny(text, "_xX") {
		return 0, &strconv.NumError{Func: "ParseFloat", Num: text, Err: strconv.ErrSyntax}
	}
	return strconv.ParseFloat(text, bits)
}

// Integers returns the elements of integers except uint64, or an error.
func Integers(flat any) ([]int64, error) {
	switch flat := flat.(type) {
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
	t, _ := Type(flat)
	return nil, fmt.Errorf("labels are %s, expected int8 to int64 or uint8 to uint32", t)
}

// Floats returns the elements as float64, of bools 0 or 1, and flat itself if it is []float64; not ok for texts.
func Floats(flat any) (numbers []float64, ok bool) {
	switch flat := flat.(type) {
	case []float64:
		return flat, true
	case []float32:
		return floating(flat), true
	case []uint64:
		return floating(flat), true
	case []bool:
		numbers = make([]float64, len(flat))
		for i, is := range flat {
			if is {
				numbers[i] = 1
			}
		}
		return numbers, true
	}
	whole, err := Integers(flat)
	return floating(whole), err == nil
}

func floating[T float32 | int64 | uint64](from []T) []float64 {
	to := make([]float64, len(from))
	for i, v := range from {
		to[i] = float64(v)
	}
	return to
}

func widen[T int8 | int16 | int32 | uint8 | uint16 | uint32](from []T) []int64 {
	to := make([]int64, len(from))
	for i, v := range from {
		to[i] = int64(v)
	}
	return to
}

// Permute writes a random permutation of 0 to len(rows)-1. Saved positions need the same one in all Go versions: PCG is
// a fixed algorithm, rand.Shuffle's use of it is not promised.
func Permute(rows []int, seed, epoch uint64) {
	random := rand.NewPCG(seed, epoch)
	for i := range rows {
		j, _ := bits.Mul64(random.Uint64(), uint64(i+1))
		rows[i] = rows[j]
		rows[j] = i
	}
}
