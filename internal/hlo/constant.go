package hlo

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"

	xlashapes "github.com/gomlx/go-xla/types/shapes"
)

type attribute string

func (a attribute) ToStableHLO() string { return string(a) }

func integers(list []int) attribute {
	text := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(list), "[]")), ", ")
	if text == "" {
		return "array<i64>"
	}
	return attribute("array<i64: " + text + ">")
}

// Constant copies the slice flat into the program. No dims: a scalar.
func (f *Function) Constant(flat any, dims ...int) (compute.Value, error) {
	home := f.home(flat)
	if home != nil {
		f = home
	}
	made, err := f.emitOne(compute.OpTypeConstant, nil, func([]*value) (*value, error) {
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
		write := func() (*value, error) { return constant(f.text, flat, toXLA(shape)) }
		if home != nil {
			write = func() (*value, error) { return f.constantApart(flat, shape) }
		}
		v, err := write()
		if err == nil {
			f.b.literal(v, flat)
		}
		return v, err
	})
	if o, ok := made.(*op); ok && len(dims) == 0 {
		o.again = f.text.Statements[len(f.text.Statements)-1].Attributes["value"].(attribute)
	}
	return made, err
}

func (f *Function) constantAgain(o *op) (*value, error) {
	made, err := f.emitOne(compute.OpTypeConstant, nil, func([]*value) (*value, error) {
		v, err := scalar(f.text, o.value.Shape().DType, 0)
		if err == nil {
			f.text.Statements[len(f.text.Statements)-1].Attributes["value"] = o.again
			f.b.sameLiteral(v, o.value)
		}
		return v, err
	})
	if err != nil {
		return nil, err
	}
	return made.(*op).value, nil
}

// The index of the first 0, or -1, of integer constants (possible divisors) and scalars (possible fill values).
func (b *Builder) literal(v *value, flat any) {
	if classOf(v)&integer == 0 && v.Shape().Rank() > 0 {
		return
	}
	all, size := bytesOf(flat), int(reflect.TypeOf(flat).Elem().Size())
	b.zeros[v] = -1
	for i, none := 0, make([]byte, size); i < len(all); i += size {
		if bytes.Equal(all[i:i+size], none) {
			b.zeros[v] = i / size
			return
		}
	}
}

func (b *Builder) sameLiteral(v, other *value) {
	if zero, ok := b.zeros[other]; ok {
		b.zeros[v] = zero
	}
}

// DynamicShape is a constant int32 vector.
func (f *Function) DynamicShape(x compute.Value) (compute.Value, error) {
	return f.emitOne(compute.OpTypeDynamicShape, []compute.Value{x}, func(v []*value) (*value, error) {
		return f.lengths(dims(v[0]), v[0].Shape().Rank())
	})
}

// DynamicDimensionSize is a constant int32.
func (f *Function) DynamicDimensionSize(x compute.Value, axis int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeDynamicDimensionSize, []compute.Value{x}, func(v []*value) (*value, error) {
		if err := checkAxes("axis", []int{axis}, v[0].Shape().Rank()); err != nil {
			return nil, err
		}
		return f.lengths(dims(v[0])[axis : axis+1])
	})
}

func checkAxes(name string, axes []int, rank int) error {
	for i, axis := range axes {
		if axis < 0 || axis >= rank {
			return fmt.Errorf("%s %v, expected axes from 0 to %d", name, axes, rank-1)
		}
		if slices.Contains(axes[:i], axis) {
			return fmt.Errorf("%s %v names axis %d twice", name, axes, axis)
		}
	}
	return nil
}

func (f *Function) lengths(list []int, dimensions ...int) (*value, error) {
	lengths := make([]int32, len(list))
	for i, n := range list {
		if n > math.MaxInt32 {
			return nil, fmt.Errorf("dimension %d, expected one that an int32 can hold", n)
		}
		lengths[i] = int32(n)
	}
	return constant(f.text, lengths, xlashapes.Make(dtypes.Int32, dimensions...))
}

// most values of a readable text
const longest = 16

func constant(f *stablehlo.Function, flat any, shape xlashapes.Shape) (*value, error) {
	if shape.Size() == 0 { // XLA cannot parse go-xla's text
		zero, err := scalar(f, shape.DType, 0)
		if err != nil {
			return nil, err
		}
		return stablehlo.BroadcastInDim(zero, shape, nil)
	}
	v, err := f.ConstantFromFlatAndShape(flat, shape)
	if err != nil {
		return nil, err
	}
	// go-xla would write the slice at the end, perhaps changed.
	attributes := f.Statements[len(f.Statements)-1].Attributes
	// go-xla writes infinite and NaN complex parts as float64, which XLA cannot parse. Packed bools depend on XLA's
	// version.
	if shape.Size() > longest && shape.DType != dtypes.Bool || shape.DType.IsComplex() {
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

func full(f *stablehlo.Function, shape xlashapes.Shape, x any) (*value, error) {
	v, err := scalar(f, shape.DType, x)
	if err != nil || shape.Rank() == 0 {
		return v, err
	}
	return stablehlo.BroadcastInDim(v, shape, nil)
}
