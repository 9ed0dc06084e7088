package flaxlike

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"

	"github.com/lazo-ml/lazo/managed"
)

// Dense is GoMLX's layers.Dense with a bias: [batch, …, n] to [batch, …, units].
func Dense(units int) Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		floats("Dense", scope, x)
		return layers.Dense(scope, x, true, units)
	}
}

// Conv is GoMLX's layers.Convolution with windows of kernel in each spatial axis, padded so that these keep their lengths:
// [batch, spatial…, n] to [batch, spatial…, channels]. For strides and the like, write a [Layer] with GoMLX's builder.
func Conv(channels, kernel int) Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		floats("Conv", scope, x)
		spatial("Conv", scope, x)
		return layers.Convolution(scope, x).Channels(channels).KernelSize(kernel).PadSame().Done()
	}
}

// MaxPool takes the greatest of windows that do not overlap, of so many places in each spatial axis of [batch, spatial…, n].
func MaxPool(window int) Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		spatial("MaxPool", scope, x)
		return graph.MaxPool(x).Window(window).Done()
	}
}

// MeanPool is [MaxPool] with means.
func MeanPool(window int) Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		spatial("MeanPool", scope, x)
		return graph.MeanPool(x).Window(window).Done()
	}
}

// GlobalMeanPool is the mean over all spatial axes: [batch, spatial…, n] to [batch, n].
func GlobalMeanPool() Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		spatial("GlobalMeanPool", scope, x)
		axes := make([]int, x.Rank()-2)
		for i := range axes {
			axes[i] = i + 1
		}
		return graph.ReduceMean(x, axes...)
	}
}

// Flatten makes [batch, n] of [batch, …].
func Flatten() Layer { return Reshape(-1) }

// Reshape gives each example other dimensions; one of them may be -1.
func Reshape(dims ...int) Layer {
	return func(_ *managed.Scope, x *managed.Node) *managed.Node {
		if x.IsScalar() {
			panic(fmt.Errorf("Reshape: the input is a scalar, expected [batch, …]"))
		}
		return graph.Reshape(x, append([]int{x.Shape().Dimensions[0]}, dims...)...)
	}
}

// word is where a word ends in a name such as LeakyRelu.
var word = regexp.MustCompile(`([a-z])([A-Z][a-z])`)

// activationsByName are GoMLX's, as leaky_relu, and one that is a function of its graphs.
func activationsByName() map[string]func(*managed.Node) *managed.Node {
	table := map[string]func(*managed.Node) *managed.Node{
		"softmax": func(x *managed.Node) *managed.Node { return graph.Softmax(x) },
	}
	for _, t := range activation.TypeValues() {
		table[strings.ToLower(word.ReplaceAllString(t.String(), "${1}_$2"))] = func(x *managed.Node) *managed.Node { return activation.Apply(t, x) }
	}
	return table
}

// Activation is one of GoMLX's activations by its name: "relu", "leaky_relu", "gelu", "swish", "tanh", …, or "softmax". An unknown name is an
// error when the model is built.
func Activation(name string) Layer {
	f, err := find("activation", name, activationsByName())
	return func(_ *managed.Scope, x *managed.Node) *managed.Node {
		if err != nil {
			panic(err)
		}
		return f(x)
	}
}

// Dropout sets a share of the numbers to 0 while training, and scales the others up (Srivastava et al. 2014).
func Dropout(rate float64) Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		if !(rate >= 0 && rate < 1) {
			panic(fmt.Errorf("Dropout: the rate is %v, expected a share from 0 to below 1", rate))
		}
		return layers.DropoutStatic(scope, x, rate)
	}
}

// BatchNorm is GoMLX's norm.BatchNorm over the last axis. Its running averages are variables that a test step only reads.
func BatchNorm() Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		return normal(scope, x, func(x *managed.Node) *managed.Node { return norm.BatchNorm(scope, x, -1).Done() })
	}
}

// LayerNorm is GoMLX's norm.LayerNorm over the last axis.
func LayerNorm() Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		return normal(scope, x, func(x *managed.Node) *managed.Node { return norm.LayerNorm(scope, x, -1).Done() })
	}
}

// RMSNorm is GoMLX's norm.RMSNorm over the last axis.
func RMSNorm() Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		return normal(scope, x, func(x *managed.Node) *managed.Node { return norm.RMSNorm(scope, x).Done() })
	}
}

// Embedding is GoMLX's layers.Embedding, in float32 unless [WithPolicy] says another type: integers [batch, …] from 0 to
// vocabulary-1 to [batch, …, width]. It does not see integers from outside: what they give is the device's to say.
func Embedding(vocabulary, width int) Layer {
	return func(scope *managed.Scope, x *managed.Node) *managed.Node {
		if !x.DType().IsInt() {
			panic(fmt.Errorf("Embedding in %s: the input is %s, expected integers from 0 to %d: give the field as []int32", scope.Scope(), x.Shape(), vocabulary-1))
		}
		if x.Rank() > 0 && x.Shape().Dimensions[x.Rank()-1] == 1 { // GoMLX takes a last axis of 1 for its own
			x = graph.ExpandAxes(x, -1)
		}
		return layers.Embedding(scope, x, dtypeOf(scope, x), vocabulary, width)
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
