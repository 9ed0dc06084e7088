package nn

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	gomlx "github.com/gomlx/gomlx/ml/nn"
)

const boolean = dtypes.Bool

// Dense is a product with a kernel [n, units], and a bias: [batch, …, n] to [batch, …, units].
type Dense struct {
	Units  int
	NoBias bool
	Kernel Initializer // GlorotUniform if nil
	Bias   Initializer // Zeros if nil
}

// Apply has the variables kernel [n, units] and bias [units].
func (d Dense) Apply(scope *Scope, x *Node) *Node {
	floats("Dense", scope, x, 1, "[batch, …, n]")
	atLeastOne("Dense", scope, "Units", d.Units)
	kernel := variable(scope, x, "kernel", d.Kernel, GlorotUniform, x.Shape().Dimensions[x.Rank()-1], d.Units)
	var bias *Node
	if !d.NoBias {
		bias = variable(scope, x, "bias", d.Bias, Zeros, d.Units)
	}
	return gomlx.Dense(x, kernel, bias, compute.DenseLayoutInputOutputs)
}

// Conv is a convolution over the spatial axes, of any number: [batch, spatial…, n] to [batch, spatial…, channels].
type Conv struct {
	Channels int
	Window   []int // of each spatial axis; one number is for all
	Strides  []int // likewise; 1 if nil
	Dilation []int // of the window, likewise; 1 if nil; not with Strides
	Groups   int   // of channels that see only their own inputs; 1 if 0
	Valid    bool  // no padding; else so many zeros that the length is divided by the stride, rounded up
	NoBias   bool
	Kernel   Initializer // GlorotUniform if nil
	Bias     Initializer // Zeros if nil
}

// Apply has the variables kernel [window…, n/groups, channels] and bias [channels].
func (c Conv) Apply(scope *Scope, x *Node) *Node {
	floats("Conv", scope, x, 3, "[batch, spatial…, n]")
	atLeastOne("Conv", scope, "Channels", c.Channels)
	spatial, n, groups := x.Rank()-2, x.Shape().Dimensions[x.Rank()-1], max(c.Groups, 1)
	if n%groups != 0 || c.Channels%groups != 0 {
		fail("Conv", scope, "%d groups for %d inputs and %d channels, expected a divisor of both", groups, n, c.Channels)
	}
	each := func(what string, list []int) []int {
		if len(list) == 0 && what != "Window" {
			list = []int{1}
		}
		all := make([]int, spatial)
		for i := range all {
			switch len(list) {
			case 1:
				all[i] = list[0]
			case spatial:
				all[i] = list[i]
			default:
				fail("Conv", scope, "%s is %v, expected one number, or one for each of %d spatial axes", what, list, spatial)
			}
			atLeastOne("Conv", scope, what, all[i])
		}
		return all
	}
	window, strides, dilation := each("Window", c.Window), each("Strides", c.Strides), each("Dilation", c.Dilation)
	if slices.Max(strides) > 1 && slices.Max(dilation) > 1 {
		fail("Conv", scope, "Strides %v and Dilation %v, expected one of them: the backend has no convolution with both", c.Strides, c.Dilation)
	}
	dims := append(append([]int(nil), window...), n/groups, c.Channels)
	conv := graph.Convolve(x, variable(scope, x, "kernel", c.Kernel, GlorotUniform, dims...)).
		StridePerAxis(strides...).DilationPerAxis(dilation...).ChannelGroupCount(groups)
	if !c.Valid {
		conv = conv.PaddingPerDim(same(x.Shape().Dimensions[1:], window, strides, dilation))
	}
	y := conv.Done()
	if c.NoBias {
		return y
	}
	return graph.Add(y, graph.ExpandLeftToRank(variable(scope, x, "bias", c.Bias, Zeros, c.Channels), y.Rank()))
}

// same are the zeros before and behind each spatial axis. GoMLX's do not heed the stride: the windows would stand
// elsewhere than Keras's and flax's.
func same(dims, window, strides, dilation []int) [][2]int {
	paddings := make([][2]int, len(window))
	for i, stride := range strides {
		last := (dims[i] - 1) / stride * stride // where the last window begins
		more := max(0, last+(window[i]-1)*dilation[i]+1-dims[i])
		paddings[i] = [2]int{more / 2, more - more/2}
	}
	return paddings
}
