package hlo

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	xladtypes "github.com/gomlx/go-xla/pkg/types/dtypes"
	xlabfloat16 "github.com/gomlx/go-xla/pkg/types/dtypes/bfloat16"
	xlashapes "github.com/gomlx/go-xla/pkg/types/shapes"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/dtypes/bfloat16"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// attribute is the text of an attribute; go-xla's statements take it as such.
type attribute string

// ToStableHLO is what go-xla asks for.
func (a attribute) ToStableHLO() string { return string(a) }

func integers(list []int) attribute {
	text := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(list), "[]")), ", ")
	if text == "" {
		return "array<i64>"
	}
	return attribute("array<i64: " + text + ">")
}

// change sets an attribute of the statement that was written last.
func change(f *stablehlo.Function, name string, to attribute) {
	f.Statements[len(f.Statements)-1].Attributes[name] = to
}

// Constant copies values into the program. flat is a slice of Go's or GoMLX's types of elements; dims may be empty for
// one value.
func (b *Builder) Constant(flat any, dims ...int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeConstant, nil, func([]*value) (*value, error) {
		slice := reflect.ValueOf(flat)
		if slice.Kind() != reflect.Slice {
			return nil, fmt.Errorf("values of type %T, expected a slice", flat)
		}
		shape := shapes.Shape{DType: dtypes.FromGoType(slice.Type().Elem()), Dimensions: dims}
		if err := checkShape(shape); err != nil {
			return nil, fmt.Errorf("values of type %T: %w", flat, err)
		}
		if shape.Size() != slice.Len() {
			return nil, fmt.Errorf("%d values for dimensions %v, which have room for %d", slice.Len(), dims, shape.Size())
		}
		return constant(b.main, flat, toXLA(shape))
	})
}

// longest is the number of values that are written as readable text.
const longest = 16

func constant(f *stablehlo.Function, flat any, shape xlashapes.Shape) (*value, error) {
	if shape.Size() == 0 { // XLA does not read what go-xla writes for these
		zero, err := scalar(f, shape.DType, 0)
		if err != nil {
			return nil, err
		}
		return stablehlo.BroadcastInDim(zero, shape, nil)
	}
	if halves, ok := flat.([]bfloat16.BFloat16); ok {
		own := make([]xlabfloat16.BFloat16, len(halves))
		for i, h := range halves {
			own[i] = xlabfloat16.BFloat16(h)
		}
		flat = own
	}
	v, err := f.ConstantFromFlatAndDimensions(flat, shape.Dimensions...)
	if err != nil {
		return nil, err
	}
	// go-xla keeps the caller's slice and writes it out at the end; the text is made now, while the values are as given.
	attributes := f.Statements[len(f.Statements)-1].Attributes
	// As bytes where it is long, or complex: go-xla writes infinite and NaN parts in double precision always, which XLA
	// does not read. Truth values would be packed, and how depends on XLA's version.
	if shape.Size() > longest && shape.DType != xladtypes.Bool || shape.DType.IsComplex() {
		attributes["value"] = attribute(fmt.Sprintf("dense<\"0x%s\"> : %s", hex.EncodeToString(bytesOf(flat)), shape.ToStableHLO()))
		return v, nil
	}
	literal, ok := attributes["value"].(interface{ ToStableHLO() string })
	if !ok {
		return nil, fmt.Errorf("go-xla holds a constant as %T, expected something with ToStableHLO", attributes["value"])
	}
	attributes["value"] = attribute(literal.ToStableHLO())
	return v, nil
}

// bytesOf is the memory of a slice of numbers; XLA's machines are little-endian, as Go's that it runs on are.
func bytesOf(slice any) []byte {
	v := reflect.ValueOf(slice)
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

// scalar writes a constant of rank 0; x is an int, int64 or float64.
func scalar(f *stablehlo.Function, t xladtypes.DType, x any) (*value, error) {
	return f.ConstantFromScalar(xlashapes.CastAsDType(x, t))
}

// full is an array of one value.
func full(f *stablehlo.Function, shape xlashapes.Shape, x any) (*value, error) {
	v, err := scalar(f, shape.DType, x)
	if err != nil || shape.Rank() == 0 {
		return v, err
	}
	return stablehlo.BroadcastInDim(v, shape, nil)
}
