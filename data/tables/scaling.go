package tables

import (
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
)

// Scaling scales each column (the last axis) to mean 0 and standard deviation 1.
type Scaling struct {
	Mean, Std []float64
}

// FitScaling computes the mean and the population standard deviation of a's last axis over all others, or of an array
// [n]. A constant column gets Std 1. The dtype must be float32, float64 or uint8, and values finite.
func FitScaling(a data.Array) (Scaling, error) {
	s, err := fitScaling(a)
	if err != nil {
		return Scaling{}, fmt.Errorf("tables: fit scaling: %w", err)
	}
	return s, nil
}

func fitScaling(a data.Array) (Scaling, error) {
	if err := arrays.Check(a.Flat, a.Dims); err != nil {
		return Scaling{}, err
	}
	columns := columnsOf(a)
	if a.Size() == 0 || !scalable(a) {
		return Scaling{}, fmt.Errorf("the array is %s %v, expected float32, float64 or uint8 with at least one example", a.DType(), a.Dims)
	}
	s := Scaling{make([]float64, columns), make([]float64, columns)}
	n := float64(a.Size() / columns)
	first := make([]float64, columns) // sums of differences have small rounding errors
	eachValue(a, func(i int, v float64) {
		if i < columns {
			first[i], s.Mean[i] = v, v
		}
		s.Mean[i%columns] += (v - first[i%columns]) / n
	})
	eachValue(a, func(i int, v float64) { // a difference of two large sums would lose all digits
		d := v - s.Mean[i%columns]
		s.Std[i%columns] += d * d / n
	})
	for c := range columns {
		// The bound is scikit-learn's.
		rounding := n * s.Mean[c] * epsilon
		constant := s.Std[c] <= n*epsilon*s.Std[c]+rounding*rounding
		if s.Std[c] = math.Sqrt(s.Std[c]); math.IsNaN(s.Std[c]) || math.IsInf(s.Std[c], 0) {
			return Scaling{}, fmt.Errorf("column %d has values that are not finite, or too large", c)
		}
		if constant {
			s.Std[c] = 1
		}
	}
	return s, nil
}

const epsilon = 0x1p-52

func columnsOf(a data.Array) int {
	if len(a.Dims) < 2 {
		return 1
	}
	return a.Dims[len(a.Dims)-1]
}

func scalable(a data.Array) bool {
	return slices.Contains([]string{"float32", "float64", "uint8"}, a.DType())
}

func eachValue(a data.Array, f func(i int, v float64)) {
	switch flat := a.Flat.(type) {
	case []float32:
		for i, v := range flat {
			f(i, float64(v))
		}
	case []float64:
		for i, v := range flat {
			f(i, v)
		}
	case []uint8:
		for i, v := range flat {
			f(i, float64(v))
		}
	}
}

// Apply returns (a - Mean) / Std as float32, or float64 if a is.
func (s Scaling) Apply(a data.Array) (data.Array, error) {
	if err := arrays.Check(a.Flat, a.Dims); err != nil {
		return data.Array{}, fmt.Errorf("tables: apply scaling: %w", err)
	}
	columns := columnsOf(a)
	if !scalable(a) || len(s.Mean) != columns || len(s.Std) != columns || slices.Contains(s.Std, 0) {
		return data.Array{}, fmt.Errorf("tables: apply scaling of %d means and %d deviations to %s %v: expected float32, float64 or uint8 with the same number of columns on the last axis, and no deviation of 0",
			len(s.Mean), len(s.Std), a.DType(), a.Dims)
	}
	dims := slices.Clone(a.Dims)
	if a.DType() == "float64" {
		flat := make([]float64, a.Size())
		eachValue(a, func(i int, v float64) { flat[i] = (v - s.Mean[i%columns]) / s.Std[i%columns] })
		return data.Array{Flat: flat, Dims: dims}, nil
	}
	flat := make([]float32, a.Size())
	eachValue(a, func(i int, v float64) { flat[i] = float32((v - s.Mean[i%columns]) / s.Std[i%columns]) })
	return data.Array{Flat: flat, Dims: dims}, nil
}
