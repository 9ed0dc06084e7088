package managed

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
)

// numbers are the elements of a tensor, of any type.
type numbers interface {
	// moments are the mean and the standard deviation (that of all, not of a sample); NaN where there are no elements.
	moments() (mean, std float64)
	// apart counts the elements that are further from another tensor's than the tolerance, and says how far at most.
	apart(other any, tolerance float64) (count int64, largest float64)
}

type elements[T comparable] struct {
	all   []T
	float func(T) float64
	exact bool // no tolerance
}

func (e elements[T]) moments() (mean, std float64) {
	n := float64(len(e.all))
	for _, v := range e.all {
		mean += e.float(v) / n
	}
	variance := 0.0
	for _, v := range e.all {
		d := e.float(v) - mean
		variance += d * d / n
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	return mean, math.Sqrt(variance)
}

func (e elements[T]) apart(other any, tolerance float64) (count int64, largest float64) {
	for i, b := range other.([]T) {
		a := e.all[i]
		x, y := e.float(a), e.float(b)
		if a == b || x != x && y != y { // NaN is as good as NaN
			continue
		}
		if d := math.Abs(x - y); e.exact || !(d <= tolerance) {
			count, largest = count+1, math.Max(largest, d)
		}
	}
	return count, largest
}

// numbersOf takes a tensor's flat slice.
func numbersOf(flat any) (numbers, error) {
	switch flat := flat.(type) {
	case []float32:
		return reals(flat, false), nil
	case []float64:
		return reals(flat, false), nil
	case []bfloat16.BFloat16:
		return elements[bfloat16.BFloat16]{all: flat, float: func(v bfloat16.BFloat16) float64 { return float64(v.Float32()) }}, nil
	case []float16.Float16:
		return elements[float16.Float16]{all: flat, float: func(v float16.Float16) float64 { return float64(v.Float32()) }}, nil
	case []int8:
		return reals(flat, true), nil
	case []int16:
		return reals(flat, true), nil
	case []int32:
		return reals(flat, true), nil
	case []int64:
		return reals(flat, true), nil
	case []uint8:
		return reals(flat, true), nil
	case []uint16:
		return reals(flat, true), nil
	case []uint32:
		return reals(flat, true), nil
	case []uint64:
		return reals(flat, true), nil
	case []bool:
		return elements[bool]{flat, func(v bool) float64 {
			if v {
				return 1
			}
			return 0
		}, true}, nil
	}
	return nil, fmt.Errorf("elements of type %T are not compared", flat)
}

func reals[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](all []T, exact bool) numbers {
	return elements[T]{all, func(v T) float64 { return float64(v) }, exact}
}
