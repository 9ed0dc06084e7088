package hlo_test

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
)

// wrong has calls that are refused, with their errors.
var wrong = []struct {
	name, want string
	do         func(o operands) (compute.Value, error)
}{
	{"Constant", "2 values for dimensions [3]", func(o operands) (compute.Value, error) { return o.Constant([]int32{1, 2}, 3) }},
	{"Constant", "expected a slice", func(o operands) (compute.Value, error) { return o.Constant(7) }},
	{"Constant", "expected a slice", func(o operands) (compute.Value, error) { return o.Constant(nil) }},
	{"Constant", "string", func(o operands) (compute.Value, error) { return o.Constant([]string{"a"}, 1) }},
	{"Constant", "expected none below 0", func(o operands) (compute.Value, error) { return o.Constant([]int32{1, 2}, -1, -2) }},
	{"Parameter", "has the name", func(o operands) (compute.Value, error) {
		_, _ = o.Parameter("twice", shapes.Make(dtypes.Bool), nil)
		return o.Parameter("twice", shapes.Make(dtypes.Bool), nil)
	}},
	{"Parameter", "type of elements", func(o operands) (compute.Value, error) { return o.Parameter("x", shapes.Make(dtypes.F8E5M2, 2), nil) }},
	{"Parameter", "has a dimension that is not known", func(o operands) (compute.Value, error) {
		return o.Parameter("x", shapes.MakeDynamic(dtypes.Float32, []int{-1, 2}, []string{"batch", ""}), nil)
	}},
	{"Parameter", "type of elements", func(o operands) (compute.Value, error) { return o.Parameter("x", shapes.Invalid(), nil) }},
	{"Parameter", "mesh", func(o operands) (compute.Value, error) {
		return o.Parameter("x", shapes.Make(dtypes.Bool, 2), &compute.ShardingSpec{Mesh: "none"})
	}},
	{"Reshape", "6 elements to dimensions [5]", func(o operands) (compute.Value, error) { return o.Reshape(o.f, 5) }},
	{"Reshape", "no dimension below 0", func(o operands) (compute.Value, error) { return o.Reshape(o.f, -1, -6) }},
	{"Transpose", "permutation", func(o operands) (compute.Value, error) { return o.Transpose(o.f, 0) }},
	{"Transpose", "repeated", func(o operands) (compute.Value, error) { return o.Transpose(o.f, 0, 0) }},
	{"Reverse", "names axis 0 twice", func(o operands) (compute.Value, error) { return o.Reverse(o.f, 0, 0) }},
	{"Reverse", "expected axes from 0 to 1", func(o operands) (compute.Value, error) { return o.Reverse(o.f, -1) }},
	{"BroadcastInDim", "increasing", func(o operands) (compute.Value, error) {
		return o.BroadcastInDim(o.f, shapes.Make(dtypes.Float32, 3, 2), []int{1, 0})
	}},
	{"BroadcastInDim", "elements of type", func(o operands) (compute.Value, error) {
		return o.BroadcastInDim(o.f, shapes.Make(dtypes.Int32, 2, 3), []int{0, 1})
	}},
	{"BroadcastInDim", "broadcastAxes", func(o operands) (compute.Value, error) {
		return o.BroadcastInDim(o.f, shapes.Make(dtypes.Float32, 2, 3), nil)
	}},
	{"Slice", "len(starts)=1, but operand rank is 2", func(o operands) (compute.Value, error) { return o.Slice(o.f, []int{0}, []int{1}, nil) }},
	{"Slice", "limit index 5 is out of bounds for axis 0 (start=0, size=2", func(o operands) (compute.Value, error) {
		return o.Slice(o.f, []int{0, 0}, []int{5, 1}, nil)
	}},
	{"Slice", "stride must be positive, but got stride[0]=0", func(o operands) (compute.Value, error) { return o.Slice(o.f, []int{0, 0}, []int{1, 1}, []int{0, 1}) }},
	{"Concatenate", "no operands", func(o operands) (compute.Value, error) { return o.Concatenate(0) }},
	{"Concatenate", "mismatched", func(o operands) (compute.Value, error) { return o.Concatenate(0, o.f, o.g) }},
	{"Concatenate", "axis", func(o operands) (compute.Value, error) { return o.Concatenate(0, o.scalar) }},
	{"Pad", "padding for 3 axes", func(o operands) (compute.Value, error) { return o.Pad(o.f, o.scalar, make([]compute.PadAxis, 3)...) }},
	{"Pad", "0 or more between", func(o operands) (compute.Value, error) { return o.Pad(o.f, o.scalar, compute.PadAxis{Interior: -1}) }},
	{"Pad", "left over", func(o operands) (compute.Value, error) { return o.Pad(o.f, o.scalar, compute.PadAxis{Start: -3}) }},
	{"Pad", "scalar", func(o operands) (compute.Value, error) { return o.Pad(o.f, o.vector) }},
	{"Iota", "axis", func(o operands) (compute.Value, error) { return o.Iota(shapes.Make(dtypes.Int32, 2), 1) }},
	{"Iota", "expected numbers", func(o operands) (compute.Value, error) { return o.Iota(shapes.Make(dtypes.Bool, 2), 0) }},
	{"Where", "must be a boolean", func(o operands) (compute.Value, error) { return o.Where(o.f, o.f, o.f) }},
	{"Where", "matching dtypes", func(o operands) (compute.Value, error) { return o.Where(o.truth, o.f, o.index) }},
	{"Where", "must either be scalar or match", func(o operands) (compute.Value, error) { return o.Where(o.truth, o.f, o.g) }},
	{"Clamp", "min", func(o operands) (compute.Value, error) { return o.Clamp(o.vector, o.f, o.scalar) }},
	{"Clamp", "data type", func(o operands) (compute.Value, error) { return o.Clamp(o.index, o.f, o.scalar) }},
	{"Complex", "expected float", func(o operands) (compute.Value, error) { return o.Complex(o.c, o.c) }},
	{"ConvertDType", "type of elements", func(o operands) (compute.Value, error) { return o.ConvertDType(o.f, dtypes.InvalidDType) }},
	{"Bitcast", "expected a last axis of 4", func(o operands) (compute.Value, error) { return o.Bitcast(o.f, dtypes.Complex128) }},
	{"Bitcast", "type of elements", func(o operands) (compute.Value, error) { return o.Bitcast(o.f, dtypes.F8E5M2) }},
	{"DotGeneral", "contracting axes for lhs (1) doesn't match rhs (0)", func(o operands) (compute.Value, error) {
		return o.DotGeneral(o.f, []int{0}, nil, o.g, nil, nil, compute.DotGeneralConfig{})
	}},
	{"DotGeneral", "lhs axis 0 used more than once", func(o operands) (compute.Value, error) {
		return o.DotGeneral(o.f, []int{0}, []int{0}, o.f, []int{0}, []int{0}, compute.DotGeneralConfig{})
	}},
	{"DotGeneral", "expected one type", func(o operands) (compute.Value, error) {
		return o.DotGeneral(o.f, nil, nil, o.i, nil, nil, compute.DotGeneralConfig{})
	}},
	{"Gather", "expected signed integer", func(o operands) (compute.Value, error) {
		return o.Gather(o.f, o.f, 1, nil, nil, nil, nil, false)
	}},
	{"Gather", "index vector axis 7", func(o operands) (compute.Value, error) {
		return o.Gather(o.f, o.i, 7, nil, nil, nil, nil, false)
	}},
	{"Gather", "sliceSize 9 for axis 0 is larger than", func(o operands) (compute.Value, error) {
		return o.Gather(o.f, o.i, 0, []int{0, 1}, nil, []int{0, 1}, []int{9, 1}, false)
	}},
	{"Gather", "slice sizes [1 -1], expected none below 0", func(o operands) (compute.Value, error) {
		return o.Gather(o.f, o.i, 0, []int{0, 1}, nil, []int{0, 1}, []int{1, -1}, false)
	}},
	{"ScatterSum", "inserted window axes", func(o operands) (compute.Value, error) {
		return o.ScatterSum(o.f, o.i, o.f, 1, nil, []int{4}, nil, false, false)
	}},
	{"ScatterMax", "expected one type", func(o operands) (compute.Value, error) {
		return o.ScatterMax(o.f, o.i, o.i, 1, nil, nil, nil, false, false)
	}},
	{"ScatterMin", "scatterAxesToOperandAxes", func(o operands) (compute.Value, error) {
		return o.ScatterMin(o.f, o.index, o.scalar, 0, nil, []int{0, 1}, nil, false, false)
	}},
	{"DynamicSlice", "0 start indices", func(o operands) (compute.Value, error) { return o.DynamicSlice(o.f, nil, []int{1, 1}) }},
	{"DynamicSlice", "expected the same number of dimensions", func(o operands) (compute.Value, error) {
		return o.DynamicSlice(o.f, []compute.Value{o.index, o.index}, []int{1, 1, 1})
	}},
	{"DynamicSlice", "expected a scalar", func(o operands) (compute.Value, error) {
		return o.DynamicSlice(o.f, []compute.Value{o.i, o.index}, []int{1, 1})
	}},
	{"DynamicUpdateSlice", "each no larger", func(o operands) (compute.Value, error) {
		return o.DynamicUpdateSlice(o.f, o.g, []compute.Value{o.index, o.index})
	}},
	{"ArgMinMax", "expected an integer", func(o operands) (compute.Value, error) { return o.ArgMinMax(o.f, 0, dtypes.Float32, true) }},
	{"ArgMinMax", "axis", func(o operands) (compute.Value, error) { return o.ArgMinMax(o.f, 2, dtypes.Int32, true) }},
	{"ReduceWindow", "reduction 0", func(o operands) (compute.Value, error) {
		return o.ReduceWindow(o.f, compute.ReduceOpUndefined, []int{1, 1}, nil, nil, nil, nil)
	}},
	{"ReduceWindow", "window [1]", func(o operands) (compute.Value, error) {
		return o.ReduceWindow(o.f, compute.ReduceOpSum, []int{1}, nil, nil, nil, nil)
	}},
	{"ReduceWindow", "larger than", func(o operands) (compute.Value, error) {
		return o.ReduceWindow(o.f, compute.ReduceOpSum, []int{9, 1}, nil, nil, nil, nil)
	}},
	{"ReduceWindow", "its window 4.61e+18", func(o operands) (compute.Value, error) {
		return o.ReduceWindow(o.f, compute.ReduceOpSum, []int{1, 1}, nil, nil, []int{1 << 62, 1}, nil)
	}},
	{"ConvGeneral", "its window 4.61e+18", func(o operands) (compute.Value, error) {
		x, kernel := must(o.Parameter("x", shapes.Make(dtypes.Float32, 1, 3, 2), nil)), must(o.Parameter("kernel", shapes.Make(dtypes.Float32, 1, 2, 2), nil))
		axes := compute.ConvolveAxesConfig{InputSpatial: []int{1}, InputChannels: 2, KernelSpatial: []int{0}, KernelInputChannels: 1, KernelOutputChannels: 2, OutputSpatial: []int{1}, OutputChannels: 2}
		return o.ConvGeneral(x, kernel, axes, nil, nil, nil, []int{1 << 62}, 1, 1)
	}},
	{"SelectAndScatterMax", "one element for each window", func(o operands) (compute.Value, error) {
		return o.SelectAndScatterMax(o.f, o.g, []int{1, 1}, nil, nil)
	}},
	{"SelectAndScatterMin", "paddings", func(o operands) (compute.Value, error) {
		return o.SelectAndScatterMin(o.f, o.f, []int{1, 1}, nil, make([][2]int, 5))
	}},
	{"ConvGeneral", "rank-3", func(o operands) (compute.Value, error) {
		return o.ConvGeneral(o.f, o.f, compute.ConvolveAxesConfig{InputChannels: 1, KernelOutputChannels: 1, OutputChannels: 1}, nil, nil, nil, nil, 1, 1)
	}},
	{"ConvGeneral", "axes of the input", func(o operands) (compute.Value, error) {
		return o.ConvGeneral(o.f, o.f, compute.ConvolveAxesConfig{InputBatch: 8}, nil, nil, nil, nil, 1, 1)
	}},
	{"BatchNormForInference", "feature axis", func(o operands) (compute.Value, error) {
		return o.BatchNormForInference(o.f, o.vector, o.vector, o.vector, o.vector, 0.1, 5)
	}},
	{"BatchNormForTraining", "one number for each feature", func(o operands) (compute.Value, error) {
		_, _, _, err := o.BatchNormForTraining(o.f, o.vector, o.vector, 0.1, 0)
		return nil, err
	}},
	{"BatchNormGradient", "expected [2 3]", func(o operands) (compute.Value, error) {
		_, _, _, err := o.BatchNormGradient(o.f, o.vector, o.vector, o.vector, o.g, 0.1, 1)
		return nil, err
	}},
	{"FFT", "lengths []", func(o operands) (compute.Value, error) { return o.FFT(o.c, compute.FFTForward, nil) }},
	{"FFT", "expected complex", func(o operands) (compute.Value, error) { return o.FFT(o.f, compute.FFTForward, []int{3}) }},
	{"FFT", "last dimensions [3] for lengths [4]", func(o operands) (compute.Value, error) {
		return o.FFT(o.c, compute.FFTForward, []int{4})
	}},
	{"FFT", "type 9", func(o operands) (compute.Value, error) { return o.FFT(o.c, compute.FFTType(9), []int{3}) }},
	{"RNGBitGenerator", "expected 2 or 3 uint64", func(o operands) (compute.Value, error) {
		_, _, err := o.RNGBitGenerator(o.f, shapes.Make(dtypes.Uint32))
		return nil, err
	}},
	{"RNGBitGenerator", "type of elements Complex64, expected truth values", func(o operands) (compute.Value, error) {
		_, _, err := o.RNGBitGenerator(o.state, shapes.Make(dtypes.Complex64))
		return nil, err
	}},
	{"AllReduce", "no operands", func(o operands) (compute.Value, error) {
		_, err := o.AllReduce(nil, compute.ReduceOpSum, [][]int{{0}})
		return nil, err
	}},
	{"AllReduce", "each of the 1 replicas once", func(o operands) (compute.Value, error) {
		_, err := o.AllReduce([]compute.Value{o.f}, compute.ReduceOpSum, [][]int{{0, 1}})
		return nil, err
	}},
	{"AllReduce", "reduction 0", func(o operands) (compute.Value, error) {
		_, err := o.AllReduce([]compute.Value{o.f}, compute.ReduceOpUndefined, [][]int{{0}})
		return nil, err
	}},
	{"DotGeneral", "type of elements F8E5M2", func(o operands) (compute.Value, error) {
		return o.DotGeneral(o.f, []int{0}, nil, o.f, []int{0}, nil, compute.DotGeneralConfig{AccumulatorDType: dtypes.F8E5M2})
	}},
	{"Add", "of type Int4, which can be moved but not computed with; convert it first", func(o operands) (compute.Value, error) {
		x := must(o.ConvertDType(o.i, dtypes.Int4))
		return o.Add(x, x)
	}},
	{"Where", "of type Int4", func(o operands) (compute.Value, error) {
		return o.Where(must(o.ConvertDType(o.i, dtypes.Int4)), o.f, o.f)
	}},
	{"Iota", "type of elements Uint2, expected numbers", func(o operands) (compute.Value, error) { return o.Iota(shapes.Make(dtypes.Uint2, 4), 0) }},
	{"OptimizationBarrier", "no operands", func(o operands) (compute.Value, error) {
		_, err := o.OptimizationBarrier()
		return nil, err
	}},
	{"SchedulingBarrier", "not of this builder", func(o operands) (compute.Value, error) { return o.SchedulingBarrier(o.f, nil) }},
	{"DynamicShape", "not of this builder", func(o operands) (compute.Value, error) { return o.DynamicShape(7) }},
	{"DynamicDimensionSize", "axis [2], expected axes from 0 to 1", func(o operands) (compute.Value, error) { return o.DynamicDimensionSize(o.f, 2) }},

	{"Call", "the function is <nil>, expected a function that this builder made", func(o operands) (compute.Value, error) { return last(o.Call(nil, o.f)) }},
	{"Call", `the function is of builder "wrong", this is "wrong"`, func(o operands) (compute.Value, error) {
		return last(o.Call(named1(newOperands(o.t), "f"), o.f))
	}},
	{"Call", "the function has not returned yet: call its Return first", func(o operands) (compute.Value, error) {
		f, _ := o.NewFunction("f")
		return last(o.Call(f, o.f))
	}},
	{"Call", "the function has not returned yet", func(o operands) (compute.Value, error) { return last(o.Call(o.Function, o.f)) }},
	{"Call", "the function is a closure, expected one of NewFunction", func(o operands) (compute.Value, error) {
		return last(o.Call(closure1(o, o.scalar), o.f))
	}},
	{"Call", `function "f" takes ((Float32)), operands ((Float32)[2, 3])`, func(o operands) (compute.Value, error) { return last(o.Call(named1(o, "f"), o.f)) }},
	{"Call", `function "f" takes ((Float32)), operands ()`, func(o operands) (compute.Value, error) { return last(o.Call(named1(o, "f"))) }},
	{"Neg", `operand 0: it was made in function "main", which function "f" does not see`, func(o operands) (compute.Value, error) {
		f, _ := o.NewFunction("f")
		return f.Neg(o.f)
	}},
	{"Neg", "operand 0: it was made in a closure, which function \"main\" does not see", func(o operands) (compute.Value, error) {
		c, _ := o.Closure()
		return o.Neg(must(c.Parameter("x", shapes.Make(dtypes.Float32), nil)))
	}},
	{"Neg", "a closure has returned already", func(o operands) (compute.Value, error) { return closure1(o, o.scalar).Neg(o.f) }},
	{"Parameter", "a closure's parameter with a sharding, expected none", func(o operands) (compute.Value, error) {
		c, _ := o.Closure()
		return c.Parameter("x", shapes.Make(dtypes.Float32), &compute.ShardingSpec{Mesh: "m"})
	}},
	{"If", "condition of shape (Bool)[2, 3], expected a bool scalar", func(o operands) (compute.Value, error) {
		return last(o.If(o.truth, closure1(o, o.f), closure1(o, o.f)))
	}},
	{"If", "the true branch has not returned yet", func(o operands) (compute.Value, error) {
		c, _ := o.Closure()
		return last(o.If(o.yes(), c, closure1(o, o.f)))
	}},
	{"If", `the true branch is function "f", expected a closure`, func(o operands) (compute.Value, error) {
		return last(o.If(o.yes(), named1(o, "f"), closure1(o, o.f)))
	}},
	{"If", "the false branch takes ((Float32)), expected (): variables and random numbers that are first used in a closure", func(o operands) (compute.Value, error) {
		return last(o.If(o.yes(), closure1(o, o.f), closure1(o, nil, o.scalar)))
	}},
	{"If", "the false branch gives ((Float32)[3, 2]), expected ((Float32)[2, 3])", func(o operands) (compute.Value, error) {
		return last(o.If(o.yes(), closure1(o, o.f), closure1(o, o.g)))
	}},
	{"If", `the true branch uses a value from outside: it was made in a closure, which function "main" does not see`, func(o operands) (compute.Value, error) {
		c, _ := o.Closure()
		x := must(c.Parameter("x", shapes.Make(dtypes.Float32), nil))
		return last(o.If(o.yes(), closure1(o, x), closure1(o, o.scalar)))
	}},
	{"While", "no state", func(o operands) (compute.Value, error) { return last(o.While(closure1(o, o.f), closure1(o, o.f))) }},
	{"While", "the condition takes (), expected ((Float32)[2, 3])", func(o operands) (compute.Value, error) {
		return last(o.While(closure1(o, o.yes()), closure1(o, nil, o.f), o.f))
	}},
	{"While", "the condition gives ((Float32)[2, 3]), expected ((Bool))", func(o operands) (compute.Value, error) {
		return last(o.While(closure1(o, nil, o.f), closure1(o, nil, o.f), o.f))
	}},
	{"While", "the body gives ((Float32)[3, 2]), expected ((Float32)[2, 3])", func(o operands) (compute.Value, error) {
		return last(o.While(closure1(o, o.yes(), o.f), closure1(o, o.g, o.f), o.f))
	}},
	{"While", "the body is <nil>", func(o operands) (compute.Value, error) { return last(o.While(closure1(o, o.yes(), o.f), nil, o.f)) }},
	{"Sort", "no inputs", func(o operands) (compute.Value, error) { return last(o.Sort(closure1(o, o.yes()), 0, true)) }},
	{"Sort", "axis [2], expected axes from 0 to 1", func(o operands) (compute.Value, error) { return last(o.Sort(closure1(o, o.yes()), 2, true, o.f)) }},
	{"Sort", "input 1 has dimensions [3 2], input 0 [2 3]; expected the same", func(o operands) (compute.Value, error) {
		return last(o.Sort(closure1(o, o.yes()), 0, true, o.f, o.g))
	}},
	{"Sort", "the comparator takes ((Float32), (Float32)), expected ((Float32), (Float32), (Int32), (Int32))", func(o operands) (compute.Value, error) {
		return last(o.Sort(closure1(o, o.yes(), o.scalar, o.scalar), 0, true, o.f, o.i))
	}},
	{"Sort", "the comparator uses a value from outside, (Float32), which XLA's sort does not see", func(o operands) (compute.Value, error) {
		c, _ := o.Closure()
		a, _ := must(c.Parameter("a", shapes.Make(dtypes.Float32), nil)), must(c.Parameter("b", shapes.Make(dtypes.Float32), nil))
		require.NoError(o.t, c.Return([]compute.Value{must(c.LessThan(a, o.scalar))}, nil))
		return last(o.Sort(c, 0, true, o.f))
	}},
	{"Sort", "the comparator gives ((Float32)), expected ((Bool))", func(o operands) (compute.Value, error) {
		return last(o.Sort(closure1(o, nil, o.scalar, o.scalar), 0, true, o.f))
	}},
}

// last returns the last output.
func last(outputs []compute.Value, err error) (compute.Value, error) {
	if err != nil {
		return nil, err
	}
	return outputs[len(outputs)-1], nil
}

// closure1 makes a closure with parameters of the values' shapes that returns gives, or its first parameter if gives is
// nil.
func closure1(o operands, gives compute.Value, like ...compute.Value) compute.Function {
	f, _ := o.Closure()
	return returning(o, f, gives, like...)
}

// named1 makes an identity function of a scalar.
func named1(o operands, name string) compute.Function {
	f, _ := o.NewFunction(name)
	return returning(o, f, nil, o.scalar)
}

func returning(o operands, f compute.Function, gives compute.Value, like ...compute.Value) compute.Function {
	for i, v := range like {
		s, err := o.OpShape(v)
		require.NoError(o.t, err)
		p := must(f.Parameter(fmt.Sprint(i), s, nil))
		if gives == nil {
			gives = p
		}
	}
	require.NoError(o.t, f.Return([]compute.Value{gives}, nil))
	return f
}
