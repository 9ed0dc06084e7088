package hlo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/go-xla/pkg/stablehlo"
	xlashapes "github.com/gomlx/go-xla/pkg/types/shapes"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// checkAxes wants different axes of an array.
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

// perAxis wants one number for each axis, each of them least or more; none at all stands for a default.
func perAxis(name string, list []int, axes, least int) error {
	if len(list) != 0 && len(list) != axes {
		return fmt.Errorf("%s %v, expected %d numbers", name, list, axes)
	}
	for _, n := range list {
		if n < least {
			return fmt.Errorf("%s %v, expected %d at least", name, list, least)
		}
	}
	return nil
}

// Identity is x itself.
func (b *Builder) Identity(x backends.Op) (backends.Op, error) {
	return b.emitOne(backends.OpTypeIdentity, []backends.Op{x}, func(v []*value) (*value, error) { return v[0], nil })
}

// Iota counts from 0 along an axis.
func (b *Builder) Iota(shape shapes.Shape, iotaAxis int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeIota, nil, func([]*value) (*value, error) {
		if err := checkShape(shape); err != nil {
			return nil, err
		}
		if err := checkAxes("axis", []int{iotaAxis}, shape.Rank()); err != nil {
			return nil, err
		}
		if classes[shape.DType] == boolean {
			return nil, errors.New("type of elements bool, expected numbers")
		}
		counted := toXLA(shape)
		if shape.DType.IsComplex() { // XLA aborts the process for the length of a complex iota
			counted.DType = counted.DType.RealDType()
		}
		v, err := b.main.Iota(counted, iotaAxis)
		if err != nil {
			return nil, err
		}
		return convert(v, shape.DType)
	})
}

// Reshape gives the same elements, in their order, other dimensions.
func (b *Builder) Reshape(x backends.Op, dimensions ...int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeReshape, []backends.Op{x}, func(v []*value) (*value, error) {
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

// BroadcastInDim maps axis i of x to axis broadcastAxes[i] of the output, increasing, and repeats along the others and
// where x has dimension 1.
func (b *Builder) BroadcastInDim(x backends.Op, outputShape shapes.Shape, broadcastAxes []int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeBroadcastInDim, []backends.Op{x}, func(v []*value) (*value, error) {
		from := shapeOf(v[0])
		if err := checkShape(outputShape); err != nil {
			return nil, err
		}
		if outputShape.DType != from.DType {
			return nil, fmt.Errorf("output shape %s, expected elements of type %s", outputShape, from.DType)
		}
		if !slices.IsSorted(broadcastAxes) {
			return nil, fmt.Errorf("axes %v, expected increasing ones", broadcastAxes)
		}
		if err := shapeinference.BroadcastInDimOp(from, outputShape, broadcastAxes); err != nil {
			return nil, err
		}
		return stablehlo.BroadcastInDim(v[0], toXLA(outputShape), broadcastAxes)
	})
}

// Transpose puts axis permutation[i] of x at place i.
func (b *Builder) Transpose(x backends.Op, permutation ...int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeTranspose, []backends.Op{x}, func(v []*value) (*value, error) {
		if _, err := shapeinference.TransposeOp(shapeOf(v[0]), permutation); err != nil {
			return nil, err
		}
		return transpose(v[0], permutation)
	})
}

func transpose(v *value, permutation []int) (*value, error) {
	if slices.IsSorted(permutation) {
		return v, nil
	}
	return stablehlo.Transpose(v, permutation...)
}

// Reverse turns the order along axes.
func (b *Builder) Reverse(x backends.Op, axes ...int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeReverse, []backends.Op{x}, func(v []*value) (*value, error) {
		if err := checkAxes("axes", axes, v[0].Shape().Rank()); err != nil {
			return nil, err
		}
		if len(axes) == 0 {
			return v[0], nil
		}
		return stablehlo.Reverse(v[0], slices.Clone(axes)...)
	})
}

// Concatenate joins operands along an axis; along the others their dimensions are the same.
func (b *Builder) Concatenate(axis int, operands ...backends.Op) (backends.Op, error) {
	return b.emitOne(backends.OpTypeConcatenate, operands, func(v []*value) (*value, error) {
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
		if _, err := shapeinference.ConcatenateOp(all, axis); err != nil {
			return nil, err
		}
		if len(v) == 1 {
			return v[0], nil
		}
		return stablehlo.Concatenate(axis, v...)
	})
}

// Slice takes from starts up to, not with, limits, in strides; strides may be nil for 1.
func (b *Builder) Slice(x backends.Op, starts, limits, strides []int) (backends.Op, error) {
	return b.emitOne(backends.OpTypeSlice, []backends.Op{x}, func(v []*value) (*value, error) {
		rank := v[0].Shape().Rank()
		if len(starts) != rank || len(limits) != rank {
			return nil, fmt.Errorf("starts %v and limits %v, expected %d numbers in each", starts, limits, rank)
		}
		if err := perAxis("strides", strides, rank, 1); err != nil {
			return nil, err
		}
		output, empty := make([]int, rank), false
		for axis, dim := range dims(v[0]) {
			start, limit, stride := starts[axis], limits[axis], 1
			if len(strides) != 0 {
				stride = strides[axis]
			}
			if start < 0 || limit < start || limit > dim {
				return nil, fmt.Errorf("from %d to %d on axis %d, expected a range within 0 to %d", start, limit, axis, dim)
			}
			output[axis] = (limit - start + stride - 1) / stride
			empty = empty || output[axis] == 0
		}
		if rank == 0 {
			return v[0], nil
		}
		if empty { // go-xla refuses a start at the end
			return full(b.main, like(v[0], output...), 0)
		}
		return stablehlo.Slice(v[0], starts, limits, strides)
	})
}

// Pad puts fillValue, a scalar, before, behind and between the elements along each axis; less than 0 before or behind
// takes away. Axes that are not given stay.
func (b *Builder) Pad(x, fillValue backends.Op, axesConfig ...backends.PadAxis) (backends.Op, error) {
	return b.emitOne(backends.OpTypePad, []backends.Op{x, fillValue}, func(v []*value) (*value, error) {
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
		return stablehlo.Pad(v[0], v[1], before, behind, between)
	})
}
