package flaxlike

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
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
	if !isFloat(a.Flat) {
		return nil, fmt.Errorf("its numbers are %s, expected float32 or float64", a.DType())
	}
	numbers, _ := arrays.Floats(a.Flat)
	return numbers, nil
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
