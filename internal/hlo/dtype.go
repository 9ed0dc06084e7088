package hlo

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
)

type class uint8

const (
	boolean class = 1 << iota
	signed
	unsigned
	float
	complexes
	packed

	integer = signed | unsigned
	real    = integer | float
	number  = real | complexes
	any_    = number | boolean | packed
)

func (c class) String() string {
	names := []string{"bool", "signed integer", "unsigned integer", "float", "complex", "packed integer"}
	text := ""
	for i, name := range names {
		if c&(1<<i) != 0 {
			if text != "" {
				text += ", "
			}
			text += name
		}
	}
	return text
}

// classes lists the supported dtypes. Packed integers only move: XLA's CPU computes 7+7=14 in int4. GoMLX and go-xla
// lack floats of 8 and 4 bits.
var classes = map[dtypes.DType]class{
	dtypes.Bool: boolean,
	dtypes.Int8: signed, dtypes.Int16: signed, dtypes.Int32: signed, dtypes.Int64: signed,
	dtypes.Uint8: unsigned, dtypes.Uint16: unsigned, dtypes.Uint32: unsigned, dtypes.Uint64: unsigned,
	dtypes.Float16: float, dtypes.BFloat16: float, dtypes.Float32: float, dtypes.Float64: float,
	dtypes.Complex64: complexes, dtypes.Complex128: complexes,
	dtypes.Int2: packed, dtypes.Int4: packed, dtypes.Uint2: packed, dtypes.Uint4: packed,
}

func classOf(v *value) class { return classes[v.Shape().DType] }

func (c class) need(values ...*value) error {
	for i, v := range values {
		if classOf(v)&c == 0 {
			return fmt.Errorf("operand %d has elements of type %s, expected %s", i, v.Shape().DType, c)
		}
	}
	return nil
}

var withPacked = []compute.OpType{
	compute.OpTypeIdentity, compute.OpTypeConvertDType, compute.OpTypeBitcast, compute.OpTypeCall, compute.OpTypeWhile,
	compute.OpTypeOptimizationBarrier, compute.OpTypeSchedulingBarrier, compute.OpTypeDynamicShape, compute.OpTypeDynamicDimensionSize,
}

// asBytes lists operations that move elements, with the operand's index. XLA's CPU ends the process when it
// concatenates or transposes int4.
var asBytes = map[compute.OpType]int{
	compute.OpTypeReshape: 0, compute.OpTypeTranspose: 0, compute.OpTypeReverse: 0, compute.OpTypeBroadcastInDim: 0,
	compute.OpTypeSlice: 0, compute.OpTypeConcatenate: 0, compute.OpTypePad: 0, compute.OpTypeWhere: 1, compute.OpTypeGather: 0,
	compute.OpTypeDynamicSlice: 0, compute.OpTypeDynamicUpdateSlice: 0,
}

func unpacking(kind compute.OpType, lower lowering) lowering {
	return func(operands []*value) ([]*value, error) {
		first := slices.IndexFunc(operands, func(v *value) bool { return classOf(v) == packed })
		if first < 0 || slices.Contains(withPacked, kind) {
			return lower(operands)
		}
		moved, movesOnly := asBytes[kind]
		if !movesOnly || moved >= len(operands) || classOf(operands[moved]) != packed {
			return nil, fmt.Errorf("operand %d has elements of type %s, which can be moved but not computed with; convert it first", first, operands[first].Shape().DType)
		}
		packedType, bytes := operands[moved].Shape().DType, dtypes.Int8
		if packedType.IsUnsigned() {
			bytes = dtypes.Uint8
		}
		wide := slices.Clone(operands)
		for i, v := range wide {
			if v.Shape().DType != packedType {
				continue
			}
			var err error
			if wide[i], err = convert(v, bytes); err == nil {
				wide[i], err = kept(wide[i]) // else XLA moves the conversions across the operation
			}
			if err != nil {
				return nil, err
			}
		}
		results, err := lower(wide)
		for i, v := range results {
			if err == nil {
				v, err = kept(v)
			}
			if err == nil {
				results[i], err = convert(v, packedType)
			}
		}
		return results, err
	}
}

func sameType(values ...*value) error {
	for i, v := range values {
		if v.Shape().DType != values[0].Shape().DType {
			return fmt.Errorf("operand %d has elements of type %s, operand 0 of type %s; expected one type", i, v.Shape().DType, values[0].Shape().DType)
		}
	}
	return nil
}

func checkType(t dtypes.DType) error {
	if classes[t] == 0 {
		return fmt.Errorf("type of elements %s, expected one of bool, int2…int64, uint2…uint64, float16, bfloat16, float32, float64, complex64, complex128", t)
	}
	return nil
}

func checkShape(s shapes.Shape) error {
	if len(s.TupleShapes) > 0 {
		return fmt.Errorf("shape %s is a tuple, expected an array", s)
	}
	for _, dim := range s.Dimensions {
		if dim < shapes.DynamicDim {
			return fmt.Errorf("dimensions %v, expected none below 0", s.Dimensions)
		}
	}
	if s.IsDynamic() {
		return fmt.Errorf("shape %s has a dimension that is not known, expected a number for each: XLA's programs have fixed shapes", s)
	}
	return checkType(s.DType)
}

// in bytes: XLA ends the process if a number of elements overflows
const maxSize = 1 << 62

func checkSizes(values []*value) error {
	for _, v := range values {
		size := max(1, v.Shape().DType.Size())
		for _, dim := range dims(v) {
			if dim > maxSize/size {
				return fmt.Errorf("an output of %s is larger than %d bytes", shapeOf(v), maxSize)
			}
			size = max(1, size*dim)
		}
	}
	return nil
}

func toXLA(s shapes.Shape) xlashapes.Shape {
	return xlashapes.Shape{DType: s.DType, Dimensions: slices.Clone(s.Dimensions)}
}

func shapeOf(v *value) shapes.Shape {
	s := v.Shape()
	return shapes.Shape{DType: s.DType, Dimensions: slices.Clone(s.Dimensions)}
}

func dims(v *value) []int { return v.Shape().Dimensions }

func like(v *value, dimensions ...int) xlashapes.Shape {
	return xlashapes.Make(v.Shape().DType, dimensions...)
}

// lowest and highest are infinities for floats.
func lowest(t dtypes.DType) any {
	switch classes[t] {
	case float:
		return math.Inf(-1)
	case signed:
		return int64(-1) << (8*t.Size() - 1)
	}
	return int64(0)
}

func highest(t dtypes.DType) any {
	switch classes[t] {
	case float:
		return math.Inf(1)
	case signed:
		return int64(1)<<(8*t.Size()-1) - 1
	}
	return int64(-1)
}

func scalarShape(t dtypes.DType) shapes.Shape { return shapes.Make(t) }

func placeShape(dimensions []int) shapes.Shape {
	t := dtypes.Int32
	for _, dim := range dimensions {
		if dim > math.MaxInt32 {
			t = dtypes.Int64
		}
	}
	return shapes.Make(t, dimensions...)
}
