package hlo_test

import (
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// wrong are calls that are refused, and what the error says.
var wrong = []struct {
	name, want string
	do         func(o operands) (backends.Op, error)
}{
	{"Constant", "2 values for dimensions [3]", func(o operands) (backends.Op, error) { return o.Constant([]int32{1, 2}, 3) }},
	{"Constant", "expected a slice", func(o operands) (backends.Op, error) { return o.Constant(7) }},
	{"Constant", "expected a slice", func(o operands) (backends.Op, error) { return o.Constant(nil) }},
	{"Constant", "string", func(o operands) (backends.Op, error) { return o.Constant([]string{"a"}, 1) }},
	{"Constant", "expected none below 0", func(o operands) (backends.Op, error) { return o.Constant([]int32{1, 2}, -1, -2) }},
	{"Parameter", "has the name", func(o operands) (backends.Op, error) {
		_, _ = o.Parameter("twice", shapes.Make(dtypes.Bool), nil)
		return o.Parameter("twice", shapes.Make(dtypes.Bool), nil)
	}},
	{"Parameter", "type of elements", func(o operands) (backends.Op, error) { return o.Parameter("x", shapes.Make(dtypes.S4, 2), nil) }},
	{"Parameter", "type of elements", func(o operands) (backends.Op, error) { return o.Parameter("x", shapes.Invalid(), nil) }},
	{"Parameter", "mesh", func(o operands) (backends.Op, error) {
		return o.Parameter("x", shapes.Make(dtypes.Bool, 2), &backends.ShardingSpec{Mesh: "none"})
	}},
	{"Reshape", "6 elements to dimensions [5]", func(o operands) (backends.Op, error) { return o.Reshape(o.f, 5) }},
	{"Reshape", "no dimension below 0", func(o operands) (backends.Op, error) { return o.Reshape(o.f, -1, -6) }},
	{"Transpose", "permutation", func(o operands) (backends.Op, error) { return o.Transpose(o.f, 0) }},
	{"Transpose", "repeated", func(o operands) (backends.Op, error) { return o.Transpose(o.f, 0, 0) }},
	{"Reverse", "names axis 0 twice", func(o operands) (backends.Op, error) { return o.Reverse(o.f, 0, 0) }},
	{"Reverse", "expected axes from 0 to 1", func(o operands) (backends.Op, error) { return o.Reverse(o.f, -1) }},
	{"BroadcastInDim", "increasing", func(o operands) (backends.Op, error) {
		return o.BroadcastInDim(o.f, shapes.Make(dtypes.Float32, 3, 2), []int{1, 0})
	}},
	{"BroadcastInDim", "elements of type", func(o operands) (backends.Op, error) {
		return o.BroadcastInDim(o.f, shapes.Make(dtypes.Int32, 2, 3), []int{0, 1})
	}},
	{"BroadcastInDim", "broadcastAxes", func(o operands) (backends.Op, error) {
		return o.BroadcastInDim(o.f, shapes.Make(dtypes.Float32, 2, 3), nil)
	}},
	{"Slice", "expected 2 numbers in each", func(o operands) (backends.Op, error) { return o.Slice(o.f, []int{0}, []int{1}, nil) }},
	{"Slice", "expected a range within 0 to 2", func(o operands) (backends.Op, error) {
		return o.Slice(o.f, []int{0, 0}, []int{5, 1}, nil)
	}},
	{"Slice", "strides", func(o operands) (backends.Op, error) { return o.Slice(o.f, []int{0, 0}, []int{1, 1}, []int{0, 1}) }},
	{"Concatenate", "no operands", func(o operands) (backends.Op, error) { return o.Concatenate(0) }},
	{"Concatenate", "mismatched", func(o operands) (backends.Op, error) { return o.Concatenate(0, o.f, o.g) }},
	{"Concatenate", "axis", func(o operands) (backends.Op, error) { return o.Concatenate(0, o.scalar) }},
	{"Pad", "padding for 3 axes", func(o operands) (backends.Op, error) { return o.Pad(o.f, o.scalar, make([]backends.PadAxis, 3)...) }},
	{"Pad", "0 or more between", func(o operands) (backends.Op, error) { return o.Pad(o.f, o.scalar, backends.PadAxis{Interior: -1}) }},
	{"Pad", "left over", func(o operands) (backends.Op, error) { return o.Pad(o.f, o.scalar, backends.PadAxis{Start: -3}) }},
	{"Pad", "scalar", func(o operands) (backends.Op, error) { return o.Pad(o.f, o.vector) }},
	{"Iota", "axis", func(o operands) (backends.Op, error) { return o.Iota(shapes.Make(dtypes.Int32, 2), 1) }},
	{"Iota", "expected numbers", func(o operands) (backends.Op, error) { return o.Iota(shapes.Make(dtypes.Bool, 2), 0) }},
	{"Where", "expected bool", func(o operands) (backends.Op, error) { return o.Where(o.f, o.f, o.f) }},
	{"Where", "expected one type", func(o operands) (backends.Op, error) { return o.Where(o.truth, o.f, o.index) }},
	{"Where", "expected the same or scalars", func(o operands) (backends.Op, error) { return o.Where(o.truth, o.f, o.g) }},
	{"Clamp", "min", func(o operands) (backends.Op, error) { return o.Clamp(o.vector, o.f, o.scalar) }},
	{"Clamp", "data type", func(o operands) (backends.Op, error) { return o.Clamp(o.index, o.f, o.scalar) }},
	{"Complex", "expected float", func(o operands) (backends.Op, error) { return o.Complex(o.c, o.c) }},
	{"ConvertDType", "type of elements", func(o operands) (backends.Op, error) { return o.ConvertDType(o.f, dtypes.InvalidDType) }},
	{"Bitcast", "expected a last axis of 4", func(o operands) (backends.Op, error) { return o.Bitcast(o.f, dtypes.Complex128) }},
	{"Bitcast", "type of elements", func(o operands) (backends.Op, error) { return o.Bitcast(o.f, dtypes.F8E5M2) }},
	{"Dot", "expected vectors or matrices", func(o operands) (backends.Op, error) { return o.Dot(o.f, o.scalar) }},
	{"Dot", "dimensions 3 and 2", func(o operands) (backends.Op, error) { return o.Dot(o.f, o.f) }},
	{"DotGeneral", "expected as many in both", func(o operands) (backends.Op, error) {
		return o.DotGeneral(o.f, []int{0}, nil, o.g, nil, nil)
	}},
	{"DotGeneral", "names axis 0 twice", func(o operands) (backends.Op, error) {
		return o.DotGeneral(o.f, []int{0}, []int{0}, o.f, []int{0}, []int{0})
	}},
	{"DotGeneral", "expected one type", func(o operands) (backends.Op, error) { return o.DotGeneral(o.f, nil, nil, o.i, nil, nil) }},
	{"Gather", "expected signed integer", func(o operands) (backends.Op, error) {
		return o.Gather(o.f, o.f, 1, nil, nil, nil, nil, false)
	}},
	{"Gather", "index vector axis 7", func(o operands) (backends.Op, error) {
		return o.Gather(o.f, o.i, 7, nil, nil, nil, nil, false)
	}},
	{"Gather", "slice sizes", func(o operands) (backends.Op, error) {
		return o.Gather(o.f, o.i, 0, []int{0, 1}, nil, []int{0, 1}, []int{9, 1}, false)
	}},
	{"ScatterSum", "inserted window axes", func(o operands) (backends.Op, error) {
		return o.ScatterSum(o.f, o.i, o.f, 1, nil, []int{4}, nil, false, false)
	}},
	{"ScatterMax", "expected one type", func(o operands) (backends.Op, error) {
		return o.ScatterMax(o.f, o.i, o.i, 1, nil, nil, nil, false, false)
	}},
	{"ScatterMin", "scatterAxesToOperandAxes", func(o operands) (backends.Op, error) {
		return o.ScatterMin(o.f, o.index, o.scalar, 0, nil, []int{0, 1}, nil, false, false)
	}},
	{"DynamicSlice", "0 start indices", func(o operands) (backends.Op, error) { return o.DynamicSlice(o.f, nil, []int{1, 1}) }},
	{"DynamicSlice", "expected as many", func(o operands) (backends.Op, error) {
		return o.DynamicSlice(o.f, []backends.Op{o.index, o.index}, []int{1, 1, 1})
	}},
	{"DynamicSlice", "expected a scalar", func(o operands) (backends.Op, error) {
		return o.DynamicSlice(o.f, []backends.Op{o.i, o.index}, []int{1, 1})
	}},
	{"DynamicUpdateSlice", "each no larger", func(o operands) (backends.Op, error) {
		return o.DynamicUpdateSlice(o.f, o.g, []backends.Op{o.index, o.index})
	}},
	{"ArgMinMax", "expected an integer", func(o operands) (backends.Op, error) { return o.ArgMinMax(o.f, 0, dtypes.Float32, true) }},
	{"ArgMinMax", "axis", func(o operands) (backends.Op, error) { return o.ArgMinMax(o.f, 2, dtypes.Int32, true) }},
	{"ReduceWindow", "reduction 0", func(o operands) (backends.Op, error) {
		return o.ReduceWindow(o.f, backends.ReduceOpUndefined, []int{1, 1}, nil, nil, nil, nil)
	}},
	{"ReduceWindow", "window [1]", func(o operands) (backends.Op, error) {
		return o.ReduceWindow(o.f, backends.ReduceOpSum, []int{1}, nil, nil, nil, nil)
	}},
	{"ReduceWindow", "larger than", func(o operands) (backends.Op, error) {
		return o.ReduceWindow(o.f, backends.ReduceOpSum, []int{9, 1}, nil, nil, nil, nil)
	}},
	{"SelectAndScatterMax", "one element for each window", func(o operands) (backends.Op, error) {
		return o.SelectAndScatterMax(o.f, o.g, []int{1, 1}, nil, nil)
	}},
	{"SelectAndScatterMin", "paddings", func(o operands) (backends.Op, error) {
		return o.SelectAndScatterMin(o.f, o.f, []int{1, 1}, nil, make([][2]int, 5))
	}},
	{"ConvGeneral", "rank-3", func(o operands) (backends.Op, error) {
		return o.ConvGeneral(o.f, o.f, backends.ConvolveAxesConfig{InputChannels: 1, KernelOutputChannels: 1, OutputChannels: 1}, nil, nil, nil, nil, 1, 1)
	}},
	{"ConvGeneral", "axes of the input", func(o operands) (backends.Op, error) {
		return o.ConvGeneral(o.f, o.f, backends.ConvolveAxesConfig{InputBatch: 8}, nil, nil, nil, nil, 1, 1)
	}},
	{"BatchNormForInference", "feature axis", func(o operands) (backends.Op, error) {
		return o.BatchNormForInference(o.f, o.vector, o.vector, o.vector, o.vector, 0.1, 5)
	}},
	{"BatchNormForTraining", "one number for each feature", func(o operands) (backends.Op, error) {
		_, _, _, err := o.BatchNormForTraining(o.f, o.vector, o.vector, 0.1, 0)
		return nil, err
	}},
	{"BatchNormGradient", "expected [2 3]", func(o operands) (backends.Op, error) {
		_, _, _, err := o.BatchNormGradient(o.f, o.vector, o.vector, o.vector, o.g, 0.1, 1)
		return nil, err
	}},
	{"FFT", "lengths []", func(o operands) (backends.Op, error) { return o.FFT(o.c, backends.FFTForward, nil) }},
	{"FFT", "expected complex", func(o operands) (backends.Op, error) { return o.FFT(o.f, backends.FFTForward, []int{3}) }},
	{"FFT", "last dimensions [3] for lengths [4]", func(o operands) (backends.Op, error) {
		return o.FFT(o.c, backends.FFTForward, []int{4})
	}},
	{"FFT", "type 9", func(o operands) (backends.Op, error) { return o.FFT(o.c, backends.FFTType(9), []int{3}) }},
	{"RNGBitGenerator", "expected 2 or 3 uint64", func(o operands) (backends.Op, error) {
		_, _, err := o.RNGBitGenerator(o.f, shapes.Make(dtypes.Uint32))
		return nil, err
	}},
	{"RNGBitGenerator", "complex numbers", func(o operands) (backends.Op, error) {
		_, _, err := o.RNGBitGenerator(o.state, shapes.Make(dtypes.Complex64))
		return nil, err
	}},
	{"AllReduce", "no operands", func(o operands) (backends.Op, error) {
		_, err := o.AllReduce(nil, backends.ReduceOpSum, [][]int{{0}})
		return nil, err
	}},
	{"AllReduce", "each of the 1 replicas once", func(o operands) (backends.Op, error) {
		_, err := o.AllReduce([]backends.Op{o.f}, backends.ReduceOpSum, [][]int{{0, 1}})
		return nil, err
	}},
	{"AllReduce", "reduction 0", func(o operands) (backends.Op, error) {
		_, err := o.AllReduce([]backends.Op{o.f}, backends.ReduceOpUndefined, [][]int{{0}})
		return nil, err
	}},
}
