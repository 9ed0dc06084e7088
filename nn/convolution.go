package nn

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// Conv is a convolution over any number of spatial axes: [batch, spatial…, n] to [batch, spatial…, channels].
//
// A network's input [batch, n, n], n ≥ 8, is refused, as images without channels, unless Causal. A [Reshape] before the
// layer decides: of {n, n, 1} for images, of {n, n} for a sequence.
type Conv struct {
	Channels int
	Window   []int // per spatial axis; one number applies to all
	Strides  []int // same form; 1 if nil
	Dilation []int // of the window, same form; 1 if nil
	Groups   int   // groups of channels with separate inputs; 1 if 0
	Valid    bool  // no padding; else zeros, for a length of ⌈length/stride⌉
	Padding  []int // zeros before and after each axis as in PyTorch, same form, with Valid
	Causal   bool  // pads only in front: no place depends on later ones; one spatial axis
	NoBias   bool
	Kernel   model.VariableInitializer
	Bias     model.VariableInitializer
}

// Apply has the variables kernel [window…, n/groups, channels] and bias [channels].
func (c Conv) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(c, scope, x) }

func (c Conv) build(scope *model.Scope, x *graph.Node) *graph.Node {
	w := windowsOf("Conv", scope, x, c.Window, c.Strides, c.Dilation, c.Causal)
	atLeastOne("Conv", scope, "Channels", c.Channels)
	if c.Groups < 0 {
		fail("Conv", scope, "Groups is %d, expected 0, which means 1, or more", c.Groups)
	}
	n, groups := x.Shape().Dimensions[x.Rank()-1], max(c.Groups, 1)
	if n%groups != 0 || c.Channels%groups != 0 {
		fail("Conv", scope, "%d groups for %d inputs and %d channels, expected a divisor of both", groups, n, c.Channels)
	}
	if c.Padding != nil {
		if !c.Valid {
			fail("Conv", scope, "Padding is %v without Valid, expected Valid: other zeros are then not added", c.Padding)
		}
		x = padded("Conv", scope, x, c.Padding)
	}
	paddings := w.paddings("Conv", scope, x, c.Valid, c.Causal)
	y := w.convolve(x, variable(scope, x, "kernel", c.Kernel, glorotUniform, w.kernel(n/groups, c.Channels)...), paddings, groups)
	return biased(scope, y, c.NoBias, c.Bias)
}

func padded(layer string, scope *model.Scope, x *graph.Node, padding []int) *graph.Node {
	axes := make([]graph.PadAxis, x.Rank())
	for i, n := range perAxis(layer, scope, "Padding", padding, x.Rank()-2, 0) {
		if n > maxReach {
			fail(layer, scope, "Padding is %d, expected at most %d", n, maxReach)
		}
		axes[1+i] = graph.PadAxis{Start: n, End: n}
	}
	return graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), axes...)
}

// DepthwiseConv convolves each channel separately: [batch, spatial…, n] to [batch, spatial…, n·multiplier], with a
// channel's outputs adjacent. Window to Causal are as in [Conv].
type DepthwiseConv struct {
	Multiplier int // outputs per channel; 1 if 0
	Window     []int
	Strides    []int
	Dilation   []int
	Valid      bool
	Causal     bool
	NoBias     bool
	Kernel     model.VariableInitializer
	Bias       model.VariableInitializer
}

// Apply has the variables kernel [window…, n, multiplier] and bias [n·multiplier].
func (c DepthwiseConv) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return apply(c, scope, x)
}

func (c DepthwiseConv) build(scope *model.Scope, x *graph.Node) *graph.Node {
	w := windowsOf("DepthwiseConv", scope, x, c.Window, c.Strides, c.Dilation, c.Causal)
	y := w.depthwise("DepthwiseConv", "kernel", scope, x, c.Multiplier, c.Valid, c.Causal, c.Kernel)
	return biased(scope, y, c.NoBias, c.Bias)
}

// SeparableConv is a [DepthwiseConv] without bias, then a 1×1 convolution: [batch, spatial…, n] to [batch, spatial…,
// channels].
type SeparableConv struct {
	Channels   int
	Multiplier int // depthwise outputs per input channel; 1 if 0
	Window     []int
	Strides    []int
	Dilation   []int
	Valid      bool
	Causal     bool
	NoBias     bool
	Depthwise  model.VariableInitializer
	Pointwise  model.VariableInitializer
	Bias       model.VariableInitializer
}

// Apply has the variables depthwise_kernel [window…, n, multiplier], pointwise_kernel [1…, n·multiplier, channels] and
// bias [channels].
func (c SeparableConv) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return apply(c, scope, x)
}

func (c SeparableConv) build(scope *model.Scope, x *graph.Node) *graph.Node {
	w := windowsOf("SeparableConv", scope, x, c.Window, c.Strides, c.Dilation, c.Causal)
	atLeastOne("SeparableConv", scope, "Channels", c.Channels)
	y := w.depthwise("SeparableConv", "depthwise_kernel", scope, x, c.Multiplier, c.Valid, c.Causal, c.Depthwise)
	one := windows{ones(len(w.window)), ones(len(w.window)), ones(len(w.window))}
	kernel := variable(scope, x, "pointwise_kernel", c.Pointwise, glorotUniform, one.kernel(y.Shape().Dimensions[y.Rank()-1], c.Channels)...)
	return biased(scope, one.convolve(y, kernel, nil, 1), c.NoBias, c.Bias)
}

// ConvTranspose is the transposed convolution, the gradient of a [Conv] with respect to its input: [batch, spatial…, n]
// to [batch, spatial…, channels]. Window to Dilation are as in Conv.
//
// With input length l, reach r = (window-1)·dilation+1 and stride s, the output length is l·s, or with Valid (l-1)·s +
// max(r, s). With an OutputPadding p it is (l-1)·s + r mod 2 + p, or with Valid (l-1)·s + r + p.
type ConvTranspose struct {
	Channels int
	Window   []int
	Strides  []int
	Dilation []int
	// OutputPadding selects among the lengths that a Conv of this stride maps to the same output: places above the
	// minimum, 0 <= p < stride, in the same form.
	OutputPadding []int
	Valid         bool
	NoBias        bool
	Kernel        model.VariableInitializer
	Bias          model.VariableInitializer
}

// Apply has the variables kernel [window…, channels, n] and bias [channels].
func (c ConvTranspose) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return apply(c, scope, x)
}

func (c ConvTranspose) build(scope *model.Scope, x *graph.Node) *graph.Node {
	const layer = "ConvTranspose"
	w := windowsOf(layer, scope, x, c.Window, c.Strides, c.Dilation, false)
	atLeastOne(layer, scope, "Channels", c.Channels)
	n, spatial := x.Shape().Dimensions[x.Rank()-1], x.Rank()-2
	var more []int
	if c.OutputPadding != nil {
		more = perAxis(layer, scope, "OutputPadding", c.OutputPadding, spatial, 0)
	}
	paddings := make([][2]int, spatial) // of the input, dilated by the strides
	for i, stride := range w.strides {
		if more != nil && more[i] >= stride {
			fail(layer, scope, "OutputPadding is %v, expected numbers below the strides, which are %v", c.OutputPadding, w.strides)
		}
		reach := w.reach(i)
		low, both := reach-1, 2*(reach-1)
		switch {
		case c.Valid && more != nil:
			both += more[i]
		case c.Valid:
			both += max(stride-reach, 0)
		case more != nil:
			both = reach + reach%2 - 2 + more[i]
		default:
			both = reach + stride - 2
		}
		if !c.Valid {
			low = min((both+1)/2, low)
		}
		paddings[i] = [2]int{low, both - low}
	}
	kernel := variable(scope, x, "kernel", c.Kernel, glorotUniform, w.kernel(c.Channels, n)...)
	kernel = graph.Reverse(kernel, rangeOf(0, spatial)...)
	axes := axesOf(spatial)
	axes.KernelInputChannels, axes.KernelOutputChannels = axes.KernelOutputChannels, axes.KernelInputChannels
	y := graph.ConvGeneral(x, kernel, axes, nil, paddings, w.strides, w.dilation, 1, 1)
	return biased(scope, y, c.NoBias, c.Bias)
}

type windows struct{ window, strides, dilation []int }

func windowsOf(layer string, scope *model.Scope, x *graph.Node, window, strides, dilation []int, sequence bool) windows {
	spatial(layer, scope, x)
	if d := x.Shape().Dimensions; !sequence && len(d) == 3 && d[1] == d[2] && d[1] >= 8 && x.Type() == graph.NodeTypeParameter {
		fail(layer, scope, "the input %s looks like images without an axis of channels, of which only one axis would be convolved: put "+
			"nn.Reshape{%d, %d, 1} before it for images, nn.Reshape{%d, %d} for sequences of %d places with %d numbers",
			x.Shape(), d[1], d[1], d[1], d[1], d[1], d[1])
	}
	of := func(what string, list []int) []int {
		if len(list) == 0 && what != "Window" {
			list = []int{1}
		}
		return perAxis(layer, scope, what, list, x.Rank()-2, 1)
	}
	w := windows{of("Window", window), of("Strides", strides), of("Dilation", dilation)}
	for i, n := range w.window {
		if n > maxReach || w.strides[i] > maxReach || w.dilation[i] > maxReach/n {
			fail(layer, scope, "Window %v, Strides %v, Dilation %v: expected strides and windows of at most %d places", w.window, w.strides, w.dilation, maxReach)
		}
	}
	return w
}

// maxReach: XLA ends the process if a size overflows.
const maxReach = 1 << 31

func perAxis(layer string, scope *model.Scope, what string, list []int, spatial, least int) []int {
	all := make([]int, spatial)
	for i := range all {
		switch len(list) {
		case 1:
			all[i] = list[0]
		case spatial:
			all[i] = list[i]
		default:
			fail(layer, scope, "%s is %v, expected one number, or one for each of %d spatial axes", what, list, spatial)
		}
		if all[i] < least {
			fail(layer, scope, "%s is %d, expected at least %d", what, all[i], least)
		}
	}
	return all
}

func (w windows) kernel(in, out int) []int { return append(slices.Clone(w.window), in, out) }

func (w windows) reach(axis int) int { return (w.window[axis]-1)*w.dilation[axis] + 1 }

// paddings returns the zeros before and after each spatial axis. GoMLX's ignore the stride, unlike Keras's and flax's.
func (w windows) paddings(layer string, scope *model.Scope, x *graph.Node, valid, causal bool) [][2]int {
	if causal {
		if valid || len(w.window) != 1 {
			fail(layer, scope, "Causal puts zeros in front of one spatial axis: expected the input [batch, places, n] and not Valid, got %s", x.Shape())
		}
		return [][2]int{{w.reach(0) - 1, 0}}
	}
	paddings := make([][2]int, len(w.window))
	for i, stride := range w.strides {
		n := x.Shape().Dimensions[1+i]
		last := (n - 1) / stride * stride
		switch more := last + w.reach(i) - n; {
		case valid && w.reach(i) > n:
			fail(layer, scope, "windows %v with the dilation %v do not fit the input %s: expected windows that reach over at most %d places in each spatial axis, "+
				"or padding, without Valid", w.window, w.dilation, x.Shape(), n)
		case !valid && more > 0:
			paddings[i] = [2]int{more / 2, more - more/2}
		}
	}
	return paddings
}

func (w windows) convolve(x, kernel *graph.Node, paddings [][2]int, groups int) *graph.Node {
	return graph.ConvGeneral(x, kernel, axesOf(len(w.window)), w.strides, paddings, nil, w.dilation, groups, 1)
}

func (w windows) depthwise(layer, name string, scope *model.Scope, x *graph.Node, multiplier int, valid, causal bool, initial model.VariableInitializer) *graph.Node {
	n := x.Shape().Dimensions[x.Rank()-1]
	if multiplier < 0 {
		fail(layer, scope, "Multiplier is %d, expected 0, which means 1, or more", multiplier)
	}
	multiplier = max(multiplier, 1)
	paddings := w.paddings(layer, scope, x, valid, causal)
	kernel := variable(scope, x, name, initial, glorotUniform, w.kernel(n, multiplier)...)
	return w.convolve(x, graph.Reshape(kernel, w.kernel(1, n*multiplier)...), paddings, n)
}

func biased(scope *model.Scope, y *graph.Node, none bool, initial model.VariableInitializer) *graph.Node {
	if none {
		return y
	}
	bias := variable(scope, y, "bias", initial, graph.Zeros, y.Shape().Dimensions[y.Rank()-1])
	return graph.Add(y, graph.ExpandLeftToRank(bias, y.Rank()))
}

func axesOf(spatial int) compute.ConvolveAxesConfig {
	around := rangeOf(1, spatial)
	return compute.ConvolveAxesConfig{
		InputBatch: 0, InputSpatial: around, InputChannels: spatial + 1,
		KernelSpatial: rangeOf(0, spatial), KernelInputChannels: spatial, KernelOutputChannels: spatial + 1,
		OutputBatch: 0, OutputSpatial: around, OutputChannels: spatial + 1,
	}
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

func rangeOf(from, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = from + i
	}
	return list
}
