package hlo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
	xlashapes "github.com/gomlx/go-xla/types/shapes"
)

func (f *Function) Identity(x compute.Value) (compute.Value, error) {
	return f.emitOne(compute.OpTypeIdentity, []compute.Value{x}, func(v []*value) (*value, error) { return v[0], nil })
}

func (f *Function) OptimizationBarrier(operands ...compute.Value) ([]compute.Value, error) {
	return f.emitList(compute.OpTypeOptimizationBarrier, operands, func(v []*value) ([]*value, error) {
		if len(v) == 0 {
			return nil, errors.New("no operands, expected 1 at least")
		}
		return stablehlo.OptimizationBarrier(v...)
	})
}

func (f *Function) SchedulingBarrier(operand compute.Value, dependencies ...compute.Value) (compute.Value, error) {
	return f.emitOne(compute.OpTypeSchedulingBarrier, append([]compute.Value{operand}, dependencies...), func(v []*value) (*value, error) {
		x := v[0]
		for _, other := range v[1:] {
			var err error
			if x, err = f.behind(x, other); err != nil {
				return nil, err
			}
		}
		return x, nil
	})
}

func (f *Function) Iota(shape shapes.Shape, iotaAxis int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeIota, nil, func([]*value) (*value, error) {
		if err := checkShape(shape); err != nil {
			return nil, err
		}
		if err := checkAxes("axis", []int{iotaAxis}, shape.Rank()); err != nil {
			return nil, err
		}
		if classes[shape.DType]&number == 0 {
			return nil, fmt.Errorf("type of elements %s, expected numbers", shape.DType)
		}
		counted := toXLA(shape)
		if shape.DType.IsComplex() { // XLA ends the process
			counted.DType = counted.DType.RealDType()
		}
		v, err := f.text.Iota(counted, iotaAxis)
		if err != nil {
			return nil, err
		}
		return convert(v, shape.DType)
	})
}

func (f *Function) Reshape(x compute.Value, dimensions ...int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeReshape, []compute.Value{x}, func(v []*value) (*value, error) {
		return reshape(v[0], dimensions...)
	})
}

func reshape(v *value, dimensions ...int) (*value, error) {
	if slices.Equal(dims(v), dimensions) {
		return v, nil
	}
	to := xlashapes.Shape{DType: v.Shape().DType, Dimensions: dimensions}
	if slices.ContainsFunc(dimensions, func(dim int) bool { return dim < 0 }) || to.Size() != v.Shape().Size() {
		return nil, fmt.Errorf("%d elements to dimensions %v, expected as many and no dimension below 0", v.Shape().Size(), dimensions)
	}
	return stablehlo.Reshape(v, like(v, dimensions...))
}

func (f *Function) BroadcastInDim(x compute.Value, outputShape shapes.Shape, broadcastAxes []int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeBroadcastInDim, []compute.Value{x}, func(v []*value) (*value, error) {
		from := shapeOf(v[0])
		if err := checkShape(outputShape); err != nil {
			return nil, err
		}
		if dtype := x.(*op).value.Shape().DType; outputShape.DType != dtype { // from may be bytes
			return nil, fmt.Errorf("output shape %s, expected elements of type %s", outputShape, dtype)
		}
		if !slices.IsSorted(broadcastAxes) {
			return nil, fmt.Errorf("axes %v, expected increasing ones", broadcastAxes)
		}
		if err := shapeinference.BroadcastInDim(from, outputShape, broadcastAxes, nil); err != nil {
			return nil, err
		}
		return stablehlo.BroadcastInDim(v[0], like(v[0], outputShape.Dimensions...), broadcastAxes)
	})
}

func (f *Function) Transpose(x compute.Value, permutation ...int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeTranspose, []compute.Value{x}, func(v []*value) (*value, error) {
		if _, err := shapeinference.Transpose(shapeOf(v[0]), permutation); err != nil {
			return nil, err
		}
		t, err := transpose(v[0], permutation)
		if err == nil && len(permutation) > 0 && permutation[0] == 0 {
			f.b.keepCut(v[0], t)
		}
		return t, err
	})
}

func transpose(v *value, permutation []int) (*value, error) {
	if slices.IsSorted(permutation) {
		return v, nil
	}
	return stablehlo.Transpose(v, permutation...)
}

func (f *Function) Reverse(x compute.Value, axes ...int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeReverse, []compute.Value{x}, func(v []*value) (*value, error) {
		if err := checkAxes("axes", axes, v[0].Shape().Rank()); err != nil {
			return nil, err
		}
		if len(axes) == 0 {
			return v[0], nil
		}
		return stablehlo.Reverse(v[0], slices.Clone(axes)...)
	})
}

func (f *Function) Concatenate(axis int, operands ...compute.Value) (compute.Value, error) {
	return f.emitOne(compute.OpTypeConcatenate, operands, func(v []*value) (*value, error) {
		if len(v) == 0 {
			return nil, errors.New("no operands, expected 1 at least")
		}
		if err := checkAxes("axis", []int{axis}, v[0].Shape().Rank()); err != nil {
			return nil, err
		}
		all := make([]shapes.Shape, len(v))
		for i := range v {
			all[i] = shapeOf(v[i])
		}
		if _, err := shapeinference.Concatenate(all, axis); err != nil {
			return nil, err
		}
		if len(v) == 1 {
			return v[0], nil
		}
		return stablehlo.Concatenate(axis, v...)
	})
}

func (f *Function) Slice(x compute.Value, starts, limits, strides []int) (compute.Value, error) {
	return f.emitOne(compute.OpTypeSlice, []compute.Value{x}, func(v []*value) (*value, error) {
		output, err := shapeinference.Slice(shapeOf(v[0]), starts, limits, orOnes(strides, v[0].Shape().Rank()))
		switch {
		case err != nil:
			return nil, err
		case output.Rank() == 0:
			return v[0], nil
		case output.Size() == 0: // go-xla refuses a start at the end
			return full(f.text, toXLA(output), 0)
		}
		return stablehlo.Slice(v[0], starts, limits, strides)
	})
}

func orOnes(list []int, n int) []int {
	if len(list) == 0 {
		return slices.Repeat([]int{1}, n)
	}
	return slices.Clone(list)
}

// Pad's negative padding removes elements.
func (f *Function) Pad(x, fillValue compute.Value, axesConfig ...compute.PadAxis) (compute.Value, error) {
	return f.emitOne(compute.OpTypePad, []compute.Value{x, fillValue}, func(v []*value) (*value, error) {
		rank := v[0].Shape().Rank()
		if len(axesConfig) > rank {
			return nil, fmt.Errorf("padding for %d axes, expected %d at most", len(axesConfig), rank)
		}
		before, behind, between := make([]int, rank), make([]int, rank), make([]int, rank)
		for i, c := range axesConfig {
			before[i], behind[i], between[i] = c.Start, c.End, c.Interior
			if dim := dims(v[0])[i]; c.Interior < 0 || c.Start+c.End+dim+max(dim-1, 0)*c.Interior < 0 {
				return nil, fmt.Errorf("padding %+v on axis %d of dimension %d, expected 0 or more between, and 0 or more left over", c, i, dim)
			}
		}
		if rank == 0 {
			return v[0], sameType(v...)
		}
		padded, err := stablehlo.Pad(v[0], v[1], before, behind, between)
		if err == nil {
			f.b.notePadded(padded, v[0], v[1], before, behind, between)
		}
		return padded, err
	})
}

// always returns a true condition that XLA cannot fold: x·0 is 0 or NaN.
func (f *Function) always(c *chain, of *value) *value {
	limits := slices.Repeat([]int{1}, of.Shape().Rank())
	first := c.do(func() (*value, error) { return stablehlo.Slice(of, make([]int, len(limits)), limits, nil) })
	first = c.do(func() (*value, error) { return stablehlo.Reshape(first, like(of)) })
	zero := c.do(func() (*value, error) { return scalar(f.text, of.Shape().DType, 0) })
	product := c.two(stablehlo.Multiply, first, zero)
	return c.two(stablehlo.Or, c.compare(product, zero, types.CompareEQ), c.compare(product, product, types.CompareNE))
}

// Returns x after other (docs/decisions/0038).
func (f *Function) behind(x, other *value) (*value, error) {
	if !f.b.cpu || classOf(other) != float || slices.Contains(dims(other), 0) {
		return kept(x, other)
	}
	c := &chain{}
	return c.choose(f.always(c, other), x, f.like(c, x, 0)), c.err
}
