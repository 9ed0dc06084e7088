package autodiff

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
)

// conv has a convolution's parameters, with defaults, one value per spatial axis.
type conv struct {
	axes                                     compute.ConvolveAxesConfig
	strides, inputDilations, kernelDilations []int
	paddings                                 [][2]int
	channelGroups, batchGroups               int
}

func convOf(node *graph.Node) conv {
	a := attributesOf(node)
	axes := a.sub("axes")
	c := conv{
		axes: compute.ConvolveAxesConfig{
			InputBatch: axes.int("InputBatch"), InputChannels: axes.int("InputChannels"), InputSpatial: axes.ints("InputSpatial"),
			KernelInputChannels: axes.int("KernelInputChannels"), KernelOutputChannels: axes.int("KernelOutputChannels"),
			KernelSpatial: axes.ints("KernelSpatial"),
			OutputBatch:   axes.int("OutputBatch"), OutputChannels: axes.int("OutputChannels"), OutputSpatial: axes.ints("OutputSpatial"),
		},
		strides: a.ints("strides"), inputDilations: a.ints("inputDilations"), kernelDilations: a.ints("kernelDilations"),
		paddings:      a.pairs("paddings"),
		channelGroups: a.int("channelGroupCount"), batchGroups: a.int("batchGroupCount"),
	}
	spatial := len(c.axes.InputSpatial)
	for _, factors := range []*[]int{&c.strides, &c.inputDilations, &c.kernelDilations} {
		for i := len(*factors); i < spatial; i++ {
			*factors = append(*factors, 1)
		}
	}
	if c.paddings == nil {
		c.paddings = make([][2]int, spatial)
	}
	return c
}

// a spatial axis's sizes of input, kernel and strided output with dilations, in input elements
type extents struct{ input, kernel, output int }

func (c conv) extents(i int, input, kernel, output *graph.Node) extents {
	reach := func(n *graph.Node, axis, step int) int { return (n.Shape().Dimensions[axis]-1)*step + 1 }
	return extents{
		input:  reach(input, c.axes.InputSpatial[i], c.inputDilations[i]),
		kernel: reach(kernel, c.axes.KernelSpatial[i], c.kernelDilations[i]),
		output: reach(output, c.axes.OutputSpatial[i], c.strides[i]),
	}
}

func convolution(node, v *graph.Node) []*graph.Node {
	input, kernel := node.Inputs()[0], node.Inputs()[1]
	c := convOf(node)
	if v.Shape().IsZeroSize() {
		return zeros(node.Inputs())
	}
	groups, inputAxis := c.channelGroups, c.axes.InputChannels
	if c.batchGroups > 1 {
		groups, inputAxis = c.batchGroups, c.axes.InputBatch
	}
	channels := []int{
		input.Shape().Dimensions[c.axes.InputChannels],
		kernel.Shape().Dimensions[c.axes.KernelOutputChannels],
	}
	if depthwise := c.channelGroups == channels[0] && c.channelGroups == channels[1]; depthwise {
		groups = 1
	} else {
		c.channelGroups, c.batchGroups = 1, 1
	}
	inputs, kernels := split(input, inputAxis, groups), split(kernel, c.axes.KernelOutputChannels, groups)
	vs := split(v, c.axes.OutputChannels, groups)
	inputParts, kernelParts := make([]*graph.Node, groups), make([]*graph.Node, groups)
	for i := range groups {
		inputParts[i] = c.inputGradient(inputs[i], kernels[i], vs[i])
		kernelParts[i] = c.kernelGradient(inputs[i], kernels[i], vs[i])
	}
	return []*graph.Node{join(inputParts, inputAxis), join(kernelParts, c.axes.KernelOutputChannels)}
}

func split(x *graph.Node, axis, n int) []*graph.Node {
	if n == 1 {
		return []*graph.Node{x}
	}
	return graph.Split(x, axis, n)
}

func join(parts []*graph.Node, axis int) *graph.Node {
	if len(parts) == 1 {
		return parts[0]
	}
	return graph.Concatenate(parts, axis)
}

// v, dilated by the strides, is convolved with the reversed kernel, its channel axes swapped.
func (c conv) inputGradient(input, kernel, v *graph.Node) *graph.Node {
	paddings := make([][2]int, len(c.paddings))
	for i, p := range c.paddings {
		e := c.extents(i, input, kernel, v)
		low := e.kernel - 1 - p[0]
		paddings[i] = [2]int{low, e.input + e.kernel - 1 - e.output - low}
	}
	axes := compute.ConvolveAxesConfig{
		InputBatch: c.axes.OutputBatch, InputChannels: c.axes.OutputChannels, InputSpatial: c.axes.OutputSpatial,
		KernelInputChannels: c.axes.KernelOutputChannels, KernelOutputChannels: c.axes.KernelInputChannels,
		KernelSpatial: c.axes.KernelSpatial,
		OutputBatch:   c.axes.InputBatch, OutputChannels: c.axes.InputChannels, OutputSpatial: c.axes.InputSpatial,
	}
	if c.channelGroups > 1 { // depthwise: one input channel in both directions
		axes.KernelInputChannels, axes.KernelOutputChannels = c.axes.KernelInputChannels, c.axes.KernelOutputChannels
	}
	kernel = graph.Reverse(kernel, c.axes.KernelSpatial...)
	return graph.ConvGeneral(v, kernel, axes, c.inputDilations, paddings, c.strides, c.kernelDilations, c.channelGroups, 1)
}

// v is the kernel; the batch takes the role of channels.
func (c conv) kernelGradient(input, kernel, v *graph.Node) *graph.Node {
	paddings := make([][2]int, len(c.paddings))
	for i, p := range c.paddings {
		e := c.extents(i, input, kernel, v)
		paddings[i] = [2]int{p[0], e.output + e.kernel - 1 - e.input - p[0]}
	}
	axes := compute.ConvolveAxesConfig{
		InputBatch: c.axes.InputChannels, InputChannels: c.axes.InputBatch, InputSpatial: c.axes.InputSpatial,
		KernelInputChannels: c.axes.OutputBatch, KernelOutputChannels: c.axes.OutputChannels, KernelSpatial: c.axes.OutputSpatial,
		OutputBatch: c.axes.KernelInputChannels, OutputChannels: c.axes.KernelOutputChannels, OutputSpatial: c.axes.KernelSpatial,
	}
	return graph.ConvGeneral(input, v, axes, c.kernelDilations, paddings, c.inputDilations, c.strides, 1, c.channelGroups)
}
