package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/layers/batchnorm"

	"github.com/lazo-ml/lazo/managed"
)

// Dense is GoMLX's layers.Dense with a bias: [batch, …, n] to [batch, …, units].
func Dense(units int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		floats("Dense", vars, x)
		return layers.Dense(vars, x, true, units)
	}
}

// Conv is GoMLX's layers.Convolution with windows of kernel in each spatial axis, padded so that these keep their lengths:
// [batch, spatial…, n] to [batch, spatial…, channels]. For strides and the like, write a [Layer] with GoMLX's builder.
func Conv(channels, kernel int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		floats("Conv", vars, x)
		spatial("Conv", vars, x)
		return layers.Convolution(vars, x).Channels(channels).KernelSize(kernel).PadSame().Done()
	}
}

// MaxPool takes the greatest of windows that do not overlap, of so many places in each spatial axis of [batch, spatial…, n].
func MaxPool(window int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		spatial("MaxPool", vars, x)
		return graph.MaxPool(x).Window(window).Done()
	}
}

// MeanPool is [MaxPool] with means.
func MeanPool(window int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		spatial("MeanPool", vars, x)
		return graph.MeanPool(x).Window(window).Done()
	}
}

// GlobalMeanPool is the mean over all spatial axes: [batch, spatial…, n] to [batch, n].
func GlobalMeanPool() Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		spatial("GlobalMeanPool", vars, x)
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
	return func(_ *managed.Vars, x *managed.Node) *managed.Node {
		if x.IsScalar() {
			panic(fmt.Errorf("Reshape: the input is a scalar, expected [batch, …]"))
		}
		return graph.Reshape(x, append([]int{x.Shape().Dimensions[0]}, dims...)...)
	}
}

// activationsByName are GoMLX's, and two that are functions of its graphs.
func activationsByName() map[string]func(*managed.Node) *managed.Node {
	table := map[string]func(*managed.Node) *managed.Node{
		"softmax": func(x *managed.Node) *managed.Node { return graph.Softmax(x) },
	}
	for _, t := range activations.TypeValues() {
		table[t.String()] = func(x *managed.Node) *managed.Node { return activations.Apply(t, x) }
	}
	return table
}

// Activation is an activation by its name in GoMLX: "relu", "gelu", "swish", "tanh", …, and "softmax". An unknown name is an
// error when the model is built.
func Activation(name string) Layer {
	f, err := find("activation", name, activationsByName())
	return func(_ *managed.Vars, x *managed.Node) *managed.Node {
		if err != nil {
			panic(err)
		}
		return f(x)
	}
}

// Dropout sets a share of the numbers to 0 while training, and scales the others up (Srivastava et al. 2014).
func Dropout(rate float64) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		if !(rate >= 0 && rate < 1) {
			panic(fmt.Errorf("Dropout: the rate is %v, expected a share from 0 to below 1", rate))
		}
		return layers.DropoutStatic(vars, x, rate)
	}
}

// BatchNorm is GoMLX's batchnorm over the last axis. Its running averages are variables that a test step only reads.
func BatchNorm() Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		return normal(vars, x, func(x *managed.Node) *managed.Node { return batchnorm.New(vars, x, -1).Done() })
	}
}

// LayerNorm is GoMLX's layers.LayerNormalization over the last axis.
func LayerNorm() Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		return normal(vars, x, func(x *managed.Node) *managed.Node { return layers.LayerNormalization(vars, x, -1).Done() })
	}
}

// RMSNorm is GoMLX's layers.RMSNorm over the last axis.
func RMSNorm() Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		return normal(vars, x, func(x *managed.Node) *managed.Node { return layers.RMSNorm(vars, x).Done() })
	}
}

// Embedding is GoMLX's layers.Embedding, in float32 unless [WithPolicy] says another type: integers [batch, …] from 0 to
// vocabulary-1 to [batch, …, width]. It does not see integers from outside: what they give is the device's to say.
func Embedding(vocabulary, width int) Layer {
	return func(vars *managed.Vars, x *managed.Node) *managed.Node {
		if !x.DType().IsInt() {
			panic(fmt.Errorf("Embedding in %s: the input is %s, expected integers from 0 to %d: give the field as []int32", vars.Scope(), x.Shape(), vocabulary-1))
		}
		if x.Rank() > 0 && x.Shape().Dimensions[x.Rank()-1] == 1 { // GoMLX takes a last axis of 1 for its own
			x = graph.ExpandAxes(x, -1)
		}
		return layers.Embedding(vars, x, dtypeOf(vars, x), vocabulary, width)
	}
}

func floats(layer string, vars *managed.Vars, x *managed.Node) {
	if !x.DType().IsFloat() {
		panic(fmt.Errorf("%s in %s: the input is %s, expected floating-point numbers: give the field as []float32, or begin with an Embedding", layer, vars.Scope(), x.Shape()))
	}
}

func spatial(layer string, vars *managed.Vars, x *managed.Node) {
	if x.Rank() < 3 {
		panic(fmt.Errorf("%s in %s: the input is %s, expected [batch, spatial…, channels], as [batch, height, width, 1]: see Reshape", layer, vars.Scope(), x.Shape()))
	}
}
