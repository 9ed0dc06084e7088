package export

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

func nameOf(d dtypes.DType) (string, error) {
	if d < dtypes.Bool || dtype.Type(d) >= dtype.Count {
		return "", fmt.Errorf("dtype %s cannot be exported", d)
	}
	return pjrt.DType(d).String(), nil
}

func named(name string) (dtypes.DType, error) {
	for t := dtype.Bool; t < dtype.Count; t++ {
		if pjrt.DType(t).String() == name {
			return dtypes.DType(t), nil
		}
	}
	return dtypes.InvalidDType, fmt.Errorf("unknown dtype %.40q", name)
}

func inFile(d dtypes.DType) (safetensors.DType, error) {
	t, err := safetensors.ParseDType(dtype.Type(d).InFile())
	if err != nil {
		return 0, fmt.Errorf("values of dtype %s cannot be kept in a safetensors file", d)
	}
	return t, nil
}

func sizeOf(s shapes.Shape) (int64, error) {
	if _, err := nameOf(s.DType); err != nil {
		return 0, err
	}
	if len(s.Dimensions) > maxRank || s.IsTuple() {
		return 0, fmt.Errorf("%d axes, expected at most %d", len(s.Dimensions), maxRank)
	}
	size, empty := int64(s.DType.Size()), false
	for i, d := range s.Dimensions {
		switch {
		case d < 0:
			return 0, fmt.Errorf("axis %d of %v is negative", i, s.Dimensions)
		case d == 0:
			empty = true
		case int64(d) > math.MaxInt64/size:
			return 0, fmt.Errorf("the number of bytes of dimensions %v overflows an integer", s.Dimensions)
		default:
			size *= int64(d)
		}
	}
	if empty {
		return 0, nil
	}
	return size, nil
}
