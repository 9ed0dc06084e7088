package managed

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
)

type numbers interface {
	// moments are mean and population standard deviation; NaN without elements.
	moments() (mean, std float64)
}

type elements[T any] struct {
	all   []T
	float func(T) float64
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

func numbersOf(flat any) (numbers, error) {
	switch flat := flat.(type) {
	case []float32:
		return reals(flat), nil
	case []float64:
		return reals(flat), nil
	case []bfloat16.BFloat16:
		return elements[bfloat16.BFloat16]{all: flat, float: func(v bfloat16.BFloat16) float64 { return float64(v.Float32()) }}, nil
	case []float16.Float16:
		return elements[float16.Float16]{all: flat, float: func(v float16.Float16) float64 { return float64(v.Float32()) }}, nil
	case []int8:
		return reals(flat), nil
	case []int16:
		return reals(flat), nil
	case []int32:
		return reals(flat), nil
	case []int64:
		return reals(flat), nil
	case []uint8:
		return reals(flat), nil
	case []uint16:
		return reals(flat), nil
	case []uint32:
		return reals(flat), nil
	case []uint64:
		return reals(flat), nil
	case []bool:
		return elements[bool]{flat, func(v bool) float64 {
			if v {
				return 1
			}
			return 0
		}}, nil
	}
	return nil, fmt.Errorf("elements of type %T have no mean", flat)
}

func reals[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](all []T) numbers {
	return elements[T]{all, func(v T) float64 { return float64(v) }}
}
