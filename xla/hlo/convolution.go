package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// ConvGeneral convolves, over any number of spatial axes from 1. strides and dilations nil mean 1, paddings nil 0.
// A group count below 1 means 1, and one of them is 1.
func (f *Function) ConvGeneral(
	input, kernel compute.Value, axes compute.ConvolveAxesConfig,
	strides []int, paddings [][2]int, inputDilations, kernelDilations []int,
	channelGroupCount, batchGroupCount int,
) (compute.Value, error) {
	return f.emitOne(compute.OpTypeConvGeneral, []compute.Value{input, kernel}, func(v []*value) (*value, error) {
		if err := number.need(v...); err != nil {
			return nil, err
		}
		if err := sameType(v...); err != nil {
			return nil, err
		}
		spatial := max(0, v[0].Shape().Rank()-2)
		channelGroupCount, batchGroupCount := max(1, channelGroupCount), max(1, batchGroupCount)
		strides, inputDilations, kernelDilations := orOnes(strides, spatial), orOnes(inputDilations, spatial), orOnes(kernelDilations, spatial)
		if len(paddings) == 0 {
			paddings = make([][2]int, spatial)
		}
		for _, a := range []struct {
			name string
			list []int
		}{
			{"axes of the input", slices.Concat([]int{axes.InputBatch, axes.InputChannels}, axes.InputSpatial)},
			{"axes of the kernel", slices.Concat([]int{axes.KernelInputChannels, axes.KernelOutputChannels}, axes.KernelSpatial)},
			{"axes of the output", slices.Concat([]int{axes.OutputBatch, axes.OutputChannels}, axes.OutputSpatial)},
		} {
			if err := checkAxes(a.name, a.list, v[0].Shape().Rank()); err != nil {
				return nil, err
			}
		}
		_, err := shapeinference.ConvGeneral(shapeOf(v[0]), shapeOf(v[1]), axes, strides, paddings, inputDilations, kernelDilations, channelGroupCount, batchGroupCount)
		if err != nil {
			return nil, err
		}
		convolve := func(input, kernel *value, channelGroupCount int) (*value, error) {
			return stablehlo.Convolution(input, kernel, strides, paddings, inputDilations, kernelDilations,
				axes.InputBatch, axes.InputChannels, axes.InputSpatial,
				axes.KernelInputChannels, axes.KernelOutputChannels, axes.KernelSpatial,
				axes.OutputBatch, axes.OutputChannels, axes.OutputSpatial,
				channelGroupCount, batchGroupCount, types.DotGeneralPrecisionDefault, types.DotGeneralPrecisionDefault)
		}
		together := func(input, kernel *value) (*value, error) { return convolve(input, kernel, channelGroupCount) }
		t := v[0].Shape().DType
		switch {
		case f.b.tpu && classes[t]&integer != 0 && t.Bits() == 64:
			return nil, fmt.Errorf("elements of type %s, but a TPU convolves integers of 32 bits at most: convert them (graph.ConvertDType)", t)
		case f.b.gpu && classes[t]&complexes != 0:
			return convolveParts(v[0], v[1], together)
		case f.b.gpu && classes[t]&integer != 0:
			if terms := v[1].Shape().Size() / max(1, dims(v[1])[axes.KernelOutputChannels]); terms > mostTerms {
				return nil, fmt.Errorf("elements of type %s and %d products for each output, but a GPU adds up %d integers at most: convert them (graph.ConvertDType)",
					t, terms, mostTerms)
			}
			return f.convolveIntegers(v[0], v[1], together)
		}
		var convolved *value
		if f.b.cut[v[0]] != nil && axes.InputBatch == 0 && !f.b.tpu && channelGroupCount > 1 && channelGroupCount < dims(v[0])[axes.InputChannels] {
			one := func(input, kernel *value) (*value, error) { return convolve(input, kernel, 1) }
			convolved, err = convolveGroups(v[0], v[1], axes, channelGroupCount, one)
		} else {
			convolved, err = together(v[0], v[1])
		}
		if err == nil && axes.InputBatch == 0 && axes.OutputBatch == 0 {
			f.b.keepCut(v[0], convolved)
		}
		return convolved, err
	})
}

// convolveGroups convolves group by group: XLA's division over devices has no rule for groups of several channels, and
// gives each device all examples. (A TPU's has.)
func convolveGroups(input, kernel *value, axes compute.ConvolveAxesConfig, groups int, convolve func(input, kernel *value) (*value, error)) (*value, error) {
	c := &chain{}
	group := func(v *value, axis, i int) *value {
		starts, limits := make([]int, v.Shape().Rank()), slices.Clone(dims(v))
		width := limits[axis] / groups
		starts[axis], limits[axis] = i*width, (i+1)*width
		return c.do(func() (*value, error) { return stablehlo.Slice(v, starts, limits, nil) })
	}
	all := make([]*value, groups)
	for i := range all {
		all[i] = c.two(convolve, group(input, axes.InputChannels, i), group(kernel, axes.KernelOutputChannels, i))
	}
	return c.do(func() (*value, error) { return stablehlo.Concatenate(axes.OutputChannels, all...) }), c.err
}

// convolveParts convolves complex numbers by their parts, since cuDNN knows real numbers alone.
func convolveParts(input, kernel *value, convolve func(input, kernel *value) (*value, error)) (*value, error) {
	c := &chain{}
	a, b := c.parts(input)
	d, e := c.parts(kernel)
	re := c.two(stablehlo.Subtract, c.two(convolve, a, d), c.two(convolve, b, e))
	im := c.two(stablehlo.Add, c.two(convolve, a, e), c.two(convolve, b, d))
	return c.two(stablehlo.Complex, re, im), c.err
}

// digitBits is how many bits of an integer are convolved at once, as a float64: so many sums of products of two are
// exact, as 2^(2·digitBits)·mostTerms is 2^53.
const (
	digitBits = 16
	mostTerms = 1 << 21
)

// convolveIntegers convolves integers as float64, digit by digit, since cuDNN knows few convolutions of integers. Like
// those of XLA's CPU, sums that are too large wrap around.
func (f *Function) convolveIntegers(input, kernel *value, convolve func(input, kernel *value) (*value, error)) (*value, error) {
	t := input.Shape().DType
	c := &chain{}
	digit := func(v *value, i int) *value {
		v = c.convert(v, dtypes.Uint64)
		v = c.two(stablehlo.ShiftRightLogical, v, f.like(c, v, digitBits*i))
		return c.convert(c.two(stablehlo.And, v, f.like(c, v, 1<<min(digitBits, t.Bits())-1)), dtypes.Float64)
	}
	var sum *value
	for i := 0; i*digitBits < t.Bits(); i++ {
		for j := 0; (i+j)*digitBits < t.Bits(); j++ {
			term := c.convert(c.two(convolve, digit(input, i), digit(kernel, j)), dtypes.Uint64)
			term = c.do(func() (*value, error) {
				return stablehlo.ShiftLeft(term, f.like(c, term, digitBits*(i+j)))
			})
			if sum == nil {
				sum = term
			} else {
				sum = c.two(stablehlo.Add, sum, term)
			}
			if c.err != nil {
				return nil, c.err
			}
		}
	}
	return c.convert(sum, t), c.err
}
