package export

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// types are the types that a value can have: GoMLX's, StableHLO's name, that of the files of tensors (0: none).
var types = []struct {
	dtype dtypes.DType
	name  string
	file  safetensors.DType
}{
	{dtypes.Bool, "i1", safetensors.Bool},
	{dtypes.Int8, "i8", safetensors.I8}, {dtypes.Int16, "i16", safetensors.I16},
	{dtypes.Int32, "i32", safetensors.I32}, {dtypes.Int64, "i64", safetensors.I64},
	{dtypes.Uint8, "ui8", safetensors.U8}, {dtypes.Uint16, "ui16", safetensors.U16},
	{dtypes.Uint32, "ui32", safetensors.U32}, {dtypes.Uint64, "ui64", safetensors.U64},
	{dtypes.Float16, "f16", safetensors.F16}, {dtypes.BFloat16, "bf16", safetensors.BF16},
	{dtypes.Float32, "f32", safetensors.F32}, {dtypes.Float64, "f64", safetensors.F64},
	{dtypes.Complex64, "complex<f32>", safetensors.C64}, {dtypes.Complex128, "complex<f64>", 0},
}

func nameOf(d dtypes.DType) (string, error) {
	for _, t := range types {
		if t.dtype == d {
			return t.name, nil
		}
	}
	return "", fmt.Errorf("dtype %s cannot be exported", d)
}

func named(name string) (dtypes.DType, error) {
	for _, t := range types {
		if t.name == name {
			return t.dtype, nil
		}
	}
	return dtypes.InvalidDType, fmt.Errorf("unknown dtype %.40q", name)
}

func inFile(d dtypes.DType) (safetensors.DType, error) {
	for _, t := range types {
		if t.dtype == d && t.file != 0 {
			return t.file, nil
		}
	}
	return 0, fmt.Errorf("values of dtype %s cannot be kept in a safetensors file", d)
}

// sizeOf is how many bytes an array takes. It fails for shapes that no array has.
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
			return 0, fmt.Errorf("dimensions %v are more bytes than can be counted", s.Dimensions)
		default:
			size *= int64(d)
		}
	}
	if empty {
		return 0, nil
	}
	return size, nil
}
