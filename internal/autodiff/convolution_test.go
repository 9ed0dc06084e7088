package autodiff_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// TestConvolutionGradientIsTheAdjoint draws convolutions with strides, dilations of both operands, uneven and negative
// paddings, groups of either kind and axes in any order.
func TestConvolutionGradientIsTheAdjoint(t *testing.T) {
	backend, cases := plugintest.Uncached(t), 0
	rapid.Check(t, func(t *rapid.T) {
		spatial := rapid.IntRange(1, 2).Draw(t, "spatial axes")
		groups := rapid.IntRange(1, 3).Draw(t, "groups")
		channelGroups, batchGroups := groups, 1
		if rapid.Bool().Draw(t, "batch groups") {
			channelGroups, batchGroups = 1, groups
		}
		small := rapid.IntRange(1, 3)
		batch, in, out := small.Draw(t, "batch")*batchGroups, small.Draw(t, "in"), small.Draw(t, "out")*groups
		if rapid.Bool().Draw(t, "depthwise") && batchGroups == 1 {
			in, out = 1, groups
		}
		input, kernel := []int{batch, in * channelGroups}, []int{in, out}
		defaults := rapid.Bool().Draw(t, "defaults")
		var strides, inputDilations, kernelDilations []int
		var paddings [][2]int
		for range spatial {
			n, k := rapid.IntRange(1, 6).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "k")
			spread, dilation := rapid.IntRange(1, 2).Draw(t, "input dilation"), rapid.IntRange(1, 2).Draw(t, "kernel dilation")
			if defaults {
				spread, dilation = 1, 1
			}
			reach := (k-1)*dilation + 1
			padding := [2]int{rapid.IntRange(-1, 3).Draw(t, "low"), rapid.IntRange(-1, 3).Draw(t, "high")}
			if short := reach - ((n-1)*spread + 1 + padding[0] + padding[1]); short > 0 {
				padding[1] += short // the window must fit
			}
			input, kernel = append(input, n), append(kernel, k)
			strides = append(strides, small.Draw(t, "stride"))
			inputDilations, kernelDilations = append(inputDilations, spread), append(kernelDilations, dilation)
			paddings = append(paddings, padding)
		}
		order := func(name string) []int { return rapid.Permutation(autodiff.AxesFrom(0, spatial+2)).Draw(t, name) }
		place := func(dims, order []int) []int {
			placed := make([]int, len(dims))
			for i, at := range order {
				placed[at] = dims[i]
			}
			return placed
		}
		i, k, o := order("input axes"), order("kernel axes"), order("output axes")
		axes := compute.ConvolveAxesConfig{
			InputBatch: i[0], InputChannels: i[1], InputSpatial: i[2:],
			KernelInputChannels: k[0], KernelOutputChannels: k[1], KernelSpatial: k[2:],
			OutputBatch: o[0], OutputChannels: o[1], OutputSpatial: o[2:],
		}
		if defaults {
			strides, inputDilations, kernelDilations = nil, nil, nil
		}
		bilinear(t, backend, dtypes.Float64, place(input, i), place(kernel, k), func(a, b node) node {
			return graph.ConvGeneral(a, b, axes, strides, paddings, inputDilations, kernelDilations, channelGroups, batchGroups)
		})
		cases++
	})
	t.Logf("%d convolutions", cases)
}

// XLA ended the process for a convolution whose input is dilated by the kernel's size, without padding
// (takenForGroups of internal/hlo).
func TestConvolution_dilatedByTheKernelsSize(t *testing.T) {
	backend := plugintest.Uncached(t)
	for _, c := range []struct {
		input, kernel, strides []int
		paddings               [][2]int
		dilations, ofKernel    []int
	}{
		{[]int{3, 6, 3, 2}, []int{3, 1, 3, 2}, []int{1, 2}, [][2]int{{0, 0}, {-1, 4}}, []int{2, 1}, []int{1, 2}},
		{[]int{3, 5, 3, 2}, []int{3, 1, 3, 3}, []int{2, 1}, [][2]int{{0, 0}, {1, 1}}, []int{3, 1}, []int{1, 1}},
		{[]int{3, 6, 3, 5}, []int{3, 1, 2, 2}, []int{1, 1}, [][2]int{{0, 0}, {0, 0}}, []int{2, 2}, []int{1, 1}},
	} {
		axes := compute.ConvolveAxesConfig{
			InputBatch: 2, InputChannels: 0, InputSpatial: []int{1, 3}, KernelInputChannels: 1, KernelOutputChannels: 0, KernelSpatial: []int{3, 2},
			OutputBatch: 1, OutputChannels: 2, OutputSpatial: []int{0, 3},
		}
		bilinear(t, backend, dtypes.Float64, c.input, c.kernel, func(a, b node) node {
			return graph.ConvGeneral(a, b, axes, c.strides, c.paddings, c.dilations, c.ofKernel, 3, 1)
		})
	}
}
