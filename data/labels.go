package data

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// OneHot makes labels 0 to classes-1, integers of any type but uint64 and of any dims, float32 of one more axis: 1 at
// the label, else 0. A label out of range is an error.
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

// SplitStratified is [Set.Split] with the same fraction of each class on both sides, rounded to a whole example: the
// given field, integers [n], tells the class. Each class needs an example on both sides.
func (s *Set) SplitStratified(field string, fraction float64, seed uint64) (train, test *Set, err error) {
	if train, test, err = s.splitStratified(field, fraction, seed); err != nil {
		return nil, nil, fmt.Errorf("data: split stratified: %w", err)
	}
	return train, test, nil
}

func (s *Set) splitStratified(field string, fraction float64, seed uint64) (train, test *Set, err error) {
	if !(fraction > 0 && fraction < 1) {
		return nil, nil, fmt.Errorf("the fraction is %v, expected one between 0 and 1", fraction)
	}
	labels, err := Batch{Fields: s.fields}.Get(field)
	if err != nil {
		return nil, nil, err
	}
	numbers, err := integers(labels)
	if err != nil {
		return nil, nil, fmt.Errorf("field %q: %w", field, err)
	}
	if len(labels.Dims) != 1 {
		return nil, nil, fmt.Errorf("field %q has dims %v, expected one label for each example", field, labels.Dims)
	}
	total := map[int64]int{}
	for _, n := range numbers {
		total[n]++
	}
	for _, n := range slices.Sorted(maps.Keys(total)) {
		have := total[n]
		if k := share(fraction, have); k == 0 || k == have {
			return nil, nil, fmt.Errorf("class %d has %d examples, at the fraction %v one side would have none", n, have, fraction)
		}
	}
	if s.len == 0 {
		return nil, nil, fmt.Errorf("the set is empty")
	}
	rows := make([]int, s.len)
	permute(rows, seed, splitEpoch)
	var left, right []int
	dealt := map[int64]int{}
	for _, r := range rows {
		n := numbers[r]
		if dealt[n]++; dealt[n] <= share(fraction, total[n]) {
			left = append(left, r)
		} else {
			right = append(right, r)
		}
	}
	return s.gather(left), s.gather(right), nil
}

// share is the fraction of n in whole examples, rounded to the nearest, so that all classes together keep it nearly.
func share(fraction float64, n int) int { return int(math.Floor(fraction*float64(n) + 0.5)) }
