package hlo

import (
	"fmt"
	"math"
	"slices"

	xladtypes "github.com/gomlx/go-xla/pkg/types/dtypes"
	xlashapes "github.com/gomlx/go-xla/pkg/types/shapes"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// class is a set of kinds of elements; the tables of operations say with it what they take.
type class uint8

const (
	boolean class = 1 << iota
	signed
	unsigned
	float
	complexes

	integer = signed | unsigned
	real    = integer | float
	number  = real | complexes
	any_    = number | boolean
)

func (c class) String() string {
	names := []string{"bool", "signed integer", "unsigned integer", "float", "complex"}
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

// classes are the types of elements that programs can have. GoMLX and go-xla number them alike (a test holds them to it).
var classes = map[dtypes.DType]class{
	dtypes.Bool: boolean,
	dtypes.Int8: signed, dtypes.Int16: signed, dtypes.Int32: signed, dtypes.Int64: signed,
	dtypes.Uint8: unsigned, dtypes.Uint16: unsigned, dtypes.Uint32: unsigned, dtypes.Uint64: unsigned,
	dtypes.Float16: float, dtypes.BFloat16: float, dtypes.Float32: float, dtypes.Float64: float,
	dtypes.Complex64: complexes, dtypes.Complex128: complexes,
}

func classOf(v *value) class { return classes[dtypes.DType(v.Shape().DType)] }

// need checks what elements an operation takes.
func (c class) need(values ...*value) error {
	for i, v := range values {
		if classOf(v)&c == 0 {
			return fmt.Errorf("operand %d has elements of type %s, expected %s", i, v.Shape().DType, c)
		}
	}
	return nil
}

// sameType checks that operands have one type of elements.
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
		return fmt.Errorf("type of elements %s, expected one of bool, int8…int64, uint8…uint64, float16, bfloat16, float32, float64, complex64, complex128", t)
	}
	return nil
}

func checkShape(s shapes.Shape) error {
	if len(s.TupleShapes) > 0 {
		return fmt.Errorf("shape %s is a tuple, expected an array", s)
	}
	for _, dim := range s.Dimensions {
		if dim < 0 {
			return fmt.Errorf("dimensions %v, expected none below 0", s.Dimensions)
		}
	}
	return checkType(s.DType)
}

// maxSize is up to how many bytes a value may have: XLA ends the process where a number of elements overflows.
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
	return xlashapes.Shape{DType: xladtypes.DType(s.DType), Dimensions: slices.Clone(s.Dimensions)}
}

func shapeOf(v *value) shapes.Shape {
	s := v.Shape()
	return shapes.Shape{DType: dtypes.DType(s.DType), Dimensions: slices.Clone(s.Dimensions)}
}

func dims(v *value) []int { return v.Shape().Dimensions }

// like gives v's type of elements other dimensions.
func like(v *value, dimensions ...int) xlashapes.Shape {
	return xlashapes.Make(v.Shape().DType, dimensions...)
}

// lowest and highest are the ends of a type's range, as something that scalar takes; for floats the infinities.
func lowest(t xladtypes.DType) any {
	switch classes[dtypes.DType(t)] {
	case float:
		return math.Inf(-1)
	case signed:
		return int64(-1) << (8*t.Size() - 1)
	}
	return int64(0)
}

func highest(t xladtypes.DType) any {
	switch classes[dtypes.DType(t)] {
	case float:
		return math.Inf(1)
	case signed:
		return int64(1)<<(8*t.Size()-1) - 1
	}
	return int64(-1) // all bits
}

func scalarShape(t xladtypes.DType) shapes.Shape { return shapes.Make(dtypes.DType(t)) }

// placeShape is for the places of elements along an axis.
func placeShape(dimensions []int) shapes.Shape {
	t := dtypes.Int32
	for _, dim := range dimensions {
		if dim > math.MaxInt32 {
			t = dtypes.Int64
		}
	}
	return shapes.Make(t, dimensions...)
}
