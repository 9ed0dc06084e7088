package hlo

import (
	"slices"

	"github.com/gomlx/compute"
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
		return stablehlo.Convolution(v[0], v[1], strides, paddings, inputDilations, kernelDilations,
			axes.InputBatch, axes.InputChannels, axes.InputSpatial,
			axes.KernelInputChannels, axes.KernelOutputChannels, axes.KernelSpatial,
			axes.OutputBatch, axes.OutputChannels, axes.OutputSpatial,
			channelGroupCount, batchGroupCount, types.DotGeneralPrecisionDefault, types.DotGeneralPrecisionDefault)
	})
}
