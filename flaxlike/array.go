package flaxlike

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/dtype"
)

// Input is a field that a network takes.
type Input struct {
	Name string `json:"name"`
	// Dims are the dimensions of one example.
	Type string `json:"type"`
	Dims []int  `json:"dims"`
}

type described struct {
	Name string       `json:"name"`
	Type dtypes.DType `json:"type"`
	Dims []int        `json:"dims"`
}

func inputsOf(of []described) (inputs []Input) {
	for _, d := range of {
		inputs = append(inputs, Input{d.Name, dtype.Type(d.Type).String(), slices.Clone(d.Dims[min(1, len(d.Dims)):])})
	}
	return inputs
}

func join(parts []data.Array) (data.Array, error) {
	all := reflect.ValueOf(parts[0].Flat)
	all = all.Slice3(0, all.Len(), all.Len())
	dims := slices.Clone(parts[0].Dims)
	for _, p := range parts[1:] {
		if !slices.Equal(p.Dims[1:], dims[1:]) {
			return data.Array{}, fmt.Errorf("an example's output is %v in one batch and %v in another: PredictBatches returns the outputs of each batch", dims[1:], p.Dims[1:])
		}
		all = reflect.AppendSlice(all, reflect.ValueOf(p.Flat))
		dims[0] += p.Dims[0]
	}
	return data.Array{Flat: all.Interface(), Dims: dims}, nil
}

func element(flat any, i int) any { return reflect.ValueOf(flat).Index(i).Interface() }

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func widened[T number](flat []T) []float64 {
	numbers := make([]float64, len(flat))
	for i, v := range flat {
		numbers[i] = float64(v)
	}
	return numbers
}

func asFloats(flat any) ([]float64, bool) {
	switch f := flat.(type) {
	case []float64:
		return f, true
	case []float32:
		return widened(f), true
	case []int8:
		return widened(f), true
	case []int16:
		return widened(f), true
	case []int32:
		return widened(f), true
	case []int64:
		return widened(f), true
	case []uint8:
		return widened(f), true
	case []uint16:
		return widened(f), true
	case []uint32:
		return widened(f), true
	case []uint64:
		return widened(f), true
	case []bool:
		numbers := make([]float64, len(f))
		for i, is := range f {
			if is {
				numbers[i] = 1
			}
		}
		return numbers, true
	}
	return nil, false
}

func isFloat(flat any) bool {
	switch flat.(type) {
	case []float32, []float64:
		return true
	}
	return false
}

func isZero(flat any, at int) bool {
	switch w := flat.(type) {
	case []float32:
		return w[at] == 0
	case []float64:
		return w[at] == 0
	}
	return false
}

func narrow(v float64) float32 {
	if math.IsInf(v, 0) {
		return float32(v)
	}
	return float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
}

func lastAxis(a data.Array) int {
	if len(a.Dims) < 2 {
		return 1
	}
	return max(1, a.Dims[len(a.Dims)-1])
}

func numbersIn(a data.Array) ([]float64, error) {
	switch flat := a.Flat.(type) {
	case []float64:
		return flat, nil
	case []float32:
		return widened(flat), nil
	}
	return nil, fmt.Errorf("its numbers are %s, expected float32 or float64", a.DType())
}

func finiteIn(a data.Array) ([]float64, error) {
	numbers, err := numbersIn(a)
	at := slices.IndexFunc(numbers, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	switch {
	case at < 0:
		return numbers, err
	case math.IsNaN(numbers[at]):
		return nil, fmt.Errorf("example %d has a NaN, which belongs to no class", at/(len(numbers)/a.Len()))
	}
	return nil, fmt.Errorf("example %d has %+v, which belongs to no class", at/(len(numbers)/a.Len()), numbers[at])
}
