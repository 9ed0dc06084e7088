package flaxlike

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"

	"github.com/lazo-ml/lazo/managed"
)

// Dense is GoMLX's layers.Dense with a bias: [batch, …, n] to [batch, …, units].
func Dense(units int) Layer {
	return part("Dense", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne("Dense", "units", units)
		floats("Dense", scope, x)
		return layers.Dense(scope, x, true, units)
	})
}

// Conv is GoMLX's layers.Convolution with windows of kernel in each spatial axis, padded so that these keep their
// lengths: [batch, spatial…, n] to [batch, spatial…, channels]. For strides and the like, write a [Layer] with GoMLX's
// builder.
func Conv(channels, kernel int) Layer {
	return part("Conv", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne("Conv", "channels", channels)
		atLeastOne("Conv", "kernel", kernel)
		floats("Conv", scope, x)
		spatial("Conv", scope, x)
		return layers.Convolution(scope, x).Channels(channels).KernelSize(kernel).PadSame().Done()
	})
}

// MaxPool takes the greatest of windows that do not overlap, of so many places in each spatial axis of [batch,
// spatial…, n].
func MaxPool(window int) Layer { return pool("MaxPool", window, graph.MaxPool) }

// MeanPool is [MaxPool] with means.
func MeanPool(window int) Layer { return pool("MeanPool", window, graph.MeanPool) }

func pool(layer string, window int, build func(x *managed.Node) *graph.PoolBuilder) Layer {
	return part(layer, func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne(layer, "window", window)
		spatial(layer, scope, x)
		holds(layer, scope, x, window)
		return build(x).Window(window).Done()
	})
}

// GlobalMeanPool is the mean over all spatial axes: [batch, spatial…, n] to [batch, n].
func GlobalMeanPool() Layer {
	return part("GlobalMeanPool", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		spatial("GlobalMeanPool", scope, x)
		axes := make([]int, x.Rank()-2)
		for i := range axes {
			axes[i] = i + 1
		}
		return graph.ReduceMean(x, axes...)
	})
}

// Flatten makes [batch, n] of [batch, …].
func Flatten() Layer { return part("Flatten", reshaped("Flatten", -1)) }

// Reshape gives each example other dimensions; one of them may be -1.
func Reshape(dims ...int) Layer { return part("Reshape", reshaped("Reshape", slices.Clone(dims)...)) }

func reshaped(layer string, dims ...int) Layer {
	return func(_ *managed.Scope, x *managed.Node) *managed.Node {
		if x.IsScalar() {
			panic(fmt.Errorf("%s: the input is a scalar, expected [batch, …]", layer))
		}
		return graph.Reshape(x, append([]int{x.Shape().Dimensions[0]}, dims...)...)
	}
}

// word is where a word ends in a name such as LeakyRelu.
var word = regexp.MustCompile(`([a-z])([A-Z][a-z])`)

// activationsByName are GoMLX's, as leaky_relu, and one that is a function of its graphs. Two have other slopes than
// GoMLX's: see [Activation].
func activationsByName() map[string]func(*managed.Node) *managed.Node {
	table := map[string]func(*managed.Node) *managed.Node{
		"softmax": func(x *managed.Node) *managed.Node { return graph.Softmax(x) },
	}
	for _, t := range activation.TypeValues() {
		table[strings.ToLower(word.ReplaceAllString(t.String(), "${1}_$2"))] = func(x *managed.Node) *managed.Node { return activation.Apply(t, x) }
	}
	table["leaky_relu"] = func(x *managed.Node) *managed.Node { return activation.LeakyReluWith(x, 0.2) }
	table["hard_sigmoid"] = func(x *managed.Node) *managed.Node { return activation.HardSigmoidWith(x, 1.0/6, 0.5) }
	return table
}

// Activation is one of GoMLX's activations by its name: "relu", "leaky_relu", "gelu", "swish", "tanh", …, or "softmax".
// "leaky_relu" has the slope 0.2 below 0 and "hard_sigmoid" is x/6 + 0.5 from 0 to 1; GoMLX's own, with 0.3 and 0.2,
// are functions of its package activation. An unknown name is an error when the model is built.
func Activation(name string) Layer {
	f, err := find("activation", name, activationsByName())
	return part("Activation", func(_ *managed.Scope, x *managed.Node) *managed.Node {
		if err != nil {
			panic(err)
		}
		return f(x)
	})
}

// Dropout sets a share of the numbers to 0 while training, and scales the others up (Srivastava et al. 2014).
func Dropout(rate float64) Layer {
	return part("Dropout", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		if !(rate >= 0 && rate < 1) {
			panic(fmt.Errorf("Dropout: the rate is %v, expected a share from 0 to below 1", rate))
		}
		return layers.DropoutStatic(scope, x, rate)
	})
}

// BatchNorm is managed.BatchNorm: GoMLX's norm.BatchNorm over the last axis, without the padding of a padded batch. Its
// running averages are variables that a test step only reads, and a training step too where optim.Frozen has its scale
// and offset. They are corrected for their start, as Adam's, so that a test after the first epoch does not see a mix
// with the values that they began with.
func BatchNorm() Layer {
	return part("BatchNorm", normal(managed.BatchNorm))
}

// LayerNorm is GoMLX's norm.LayerNorm over the last axis.
func LayerNorm() Layer {
	return part("LayerNorm", normal(func(scope *managed.Scope, x *managed.Node) *managed.Node {
		return norm.LayerNorm(scope, x, -1).Done()
	}))
}

// RMSNorm is GoMLX's norm.RMSNorm over the last axis.
func RMSNorm() Layer {
	return part("RMSNorm", normal(func(scope *managed.Scope, x *managed.Node) *managed.Node {
		return norm.RMSNorm(scope, x).Done()
	}))
}

// Embedding is GoMLX's layers.Embedding, in float32 unless [WithPolicy] says another type: integers [batch, …] from 0
// to vocabulary-1 to [batch, …, width]. Where the integers are a field of the batch, one from outside is an error
// ([ErrLabelRange]); where they are computed, its vector is NaN.
func Embedding(vocabulary, width int) Layer {
	return part("Embedding", func(scope *managed.Scope, x *managed.Node) *managed.Node {
		atLeastOne("Embedding", "vocabulary", vocabulary)
		atLeastOne("Embedding", "width", width)
		if !x.DType().IsInt() {
			panic(fmt.Errorf("Embedding in %s: the input is %s, expected integers from 0 to %d: give the field as []int32", scope.Scope(), x.Shape(), vocabulary-1))
		}
		if x.Rank() > 0 && x.Shape().Dimensions[x.Rank()-1] == 1 { // GoMLX takes a last axis of 1 for its own
			x = graph.ExpandAxes(x, -1)
		}
		y := layers.Embedding(scope, x, dtypeOf(scope, x), vocabulary, width)
		if t := traceOf(scope, x); t.fieldOf(x) != "" {
			t.seen.take(bound{field: t.fieldOf(x), kind: "integer", input: true, high: float64(vocabulary - 1), class: true,
				why: fmt.Sprintf("the Embedding has %d", vocabulary), hint: "make its vocabulary larger, or number from 0"})
			return y
		}
		ids := graph.Reshape(x, y.Shape().Dimensions[:y.Rank()-1]...)
		known := graph.LessThan(ids, graph.Scalar(x.Graph(), x.DType(), vocabulary))
		known = graph.LogicalAnd(known, graph.GreaterOrEqual(ids, graph.ZerosLike(ids)))
		known = graph.BroadcastToShape(graph.ExpandAxes(known, -1), shapes.Make(known.DType(), y.Shape().Dimensions...))
		return graph.Where(known, y, graph.BroadcastToShape(graph.Scalar(x.Graph(), y.DType(), math.NaN()), y.Shape()))
	})
}

func atLeastOne(layer, what string, n int) {
	if n < 1 {
		panic(fmt.Errorf("%s: %s is %d, expected at least 1", layer, what, n))
	}
}

// holds sees that a window fits into each spatial axis.
func holds(layer string, scope *managed.Scope, x *managed.Node, window int) {
	for _, n := range x.Shape().Dimensions[1 : x.Rank()-1] {
		if window > n {
			panic(fmt.Errorf("%s in %s: windows of %d do not fit the input %s: expected at most the length of each spatial axis, %d: take a smaller window, or fewer such layers", layer, scope.Scope(), window, x.Shape(), n))
		}
	}
}

func floats(layer string, scope *managed.Scope, x *managed.Node) {
	if !x.DType().IsFloat() {
		panic(fmt.Errorf("%s in %s: the input is %s, expected floating-point numbers: give the field as []float32, or begin with an Embedding", layer, scope.Scope(), x.Shape()))
	}
}

func spatial(layer string, scope *managed.Scope, x *managed.Node) {
	if x.Rank() < 3 {
		panic(fmt.Errorf("%s in %s: the input is %s, expected [batch, spatial…, channels], as [batch, height, width, 1]: see Reshape", layer, scope.Scope(), x.Shape()))
	}
}
