package flaxlike

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// Settings are those of a layer of package nn.
type Settings interface {
	nn.Dense | nn.Conv | nn.DepthwiseConv | nn.SeparableConv | nn.ConvTranspose | nn.LayerNorm | nn.RMSNorm | nn.GroupNorm | nn.Embedding | nn.Positions |
		nn.LSTM | nn.GRU | nn.SimpleRNN | nn.Attention
}

// Of is a layer of package nn with any settings:
//
//	flaxlike.Of(nn.Embedding{Vocabulary: 1000, Width: 64, Padding: new(0)})
//	flaxlike.Of(nn.LSTM{Units: 32, Bidirectional: true}) // the states of all places
//	flaxlike.Of(nn.Attention{Heads: 8, Causal: true, Rotary: 1e4, NoBias: true})
//
// Recurrences and attention leave out the places that the mask of their input leaves out ([MaskOf]), unless they have a
// Mask of their own. Integers that are a field of the batch are looked at before the step, as [Embedding] says.
func Of[S Settings](settings S) Layer { return of(reflect.TypeFor[S]().Name(), settings) }

func of[S Settings](kind string, settings S) Layer {
	switch s := any(settings).(type) {
	case nn.LSTM:
		return made(kind, lstm(s))
	case nn.GRU:
		return made(kind, gru(s))
	case nn.SimpleRNN:
		return made(kind, simpleRNN(s))
	}
	return made(kind, any(settings).(Layer))
}

// build is the layer with what this package does for it beside its Apply.
func (p part) build(scope *managed.Scope, x *managed.Node) *managed.Node {
	switch l := p.Layer.(type) {
	case nn.Dense:
		floats(p.kind, scope, x)
	case nn.Conv, nn.DepthwiseConv, nn.SeparableConv, nn.ConvTranspose:
		floats(p.kind, scope, x)
		spatial(p.kind, scope, x)
	case nn.LayerNorm, nn.RMSNorm, nn.GroupNorm:
		return normal(l.Apply)(scope, x)
	case nn.Embedding:
		return embedded(l, scope, x)
	case nn.Positions:
		sequence(p.kind, scope, x)
	case nn.Attention:
		l.Mask = maskOf(p.kind, l.Mask, scope, x)
		return l.Apply(scope, x)
	}
	return p.Layer.Apply(scope, x)
}

// maskOf is a layer's own mask, or else that of its input.
func maskOf(kind string, own *managed.Node, scope *managed.Scope, x *managed.Node) *managed.Node {
	sequence(kind, scope, x)
	if own != nil {
		return own
	}
	return MaskOf(x)
}

// Dense is nn.Dense: [batch, …, n] to [batch, …, units].
func Dense(units int) Layer { return Of(nn.Dense{Units: units}) }

// Conv is nn.Conv with windows of kernel in each spatial axis, padded so that these keep their lengths: [batch,
// spatial…, n] to [batch, spatial…, channels]. Strides, dilation, groups, no padding, zeros in front alone: [Of].
func Conv(channels, kernel int) Layer {
	return Of(nn.Conv{Channels: channels, Window: []int{kernel}})
}

// DepthwiseConv is nn.DepthwiseConv: a [Conv] of each channel by itself, [batch, spatial…, n] to the same.
func DepthwiseConv(kernel int) Layer { return Of(nn.DepthwiseConv{Window: []int{kernel}}) }

// SeparableConv is nn.SeparableConv: a [DepthwiseConv], then a product at each place, [batch, spatial…, n] to [batch,
// spatial…, channels].
func SeparableConv(channels, kernel int) Layer {
	return Of(nn.SeparableConv{Channels: channels, Window: []int{kernel}})
}

// ConvTranspose is nn.ConvTranspose: the spatial axes become as many times longer as the stride says, [batch, spatial…,
// n] to [batch, spatial·stride…, channels].
func ConvTranspose(channels, kernel, stride int) Layer {
	return Of(nn.ConvTranspose{Channels: channels, Window: []int{kernel}, Strides: []int{stride}})
}

// MaxPool takes the greatest of windows that do not overlap, of so many places in each spatial axis of [batch,
// spatial…, n].
func MaxPool(window int) Layer { return made("MaxPool", maxPool{window}) }

// MeanPool is [MaxPool] with means.
func MeanPool(window int) Layer { return made("MeanPool", meanPool{window}) }

type (
	maxPool  struct{ Window int }
	meanPool struct{ Window int }
)

func (p maxPool) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	return pool("MaxPool", p.Window, graph.MaxPool, scope, x)
}

func (p meanPool) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	return pool("MeanPool", p.Window, graph.MeanPool, scope, x)
}

func pool(layer string, window int, build func(*managed.Node) *graph.PoolBuilder, scope *managed.Scope, x *managed.Node) *managed.Node {
	atLeastOne(layer, "window", window)
	spatial(layer, scope, x)
	holds(layer, scope, x, window)
	return build(x).Window(window).Done()
}

// GlobalMeanPool is the mean over all spatial axes: [batch, spatial…, n] to [batch, n]. Of a sequence with a mask
// ([MaskOf]) it is that over the places that count, 0 if there are none.
func GlobalMeanPool() Layer { return made("GlobalMeanPool", globalMeanPool{}) }

type globalMeanPool struct{}

func (globalMeanPool) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	spatial("GlobalMeanPool", scope, x)
	axes := make([]int, x.Rank()-2)
	for i := range axes {
		axes[i] = i + 1
	}
	if mask := MaskOf(x); mask != nil {
		counts := graph.BroadcastToDims(outputs.Expanded(mask, x), x.Shape().Dimensions...)
		places := graph.ReduceSum(graph.ConvertDType(counts, x.DType()), axes...)
		return graph.Div(graph.ReduceSum(graph.Where(counts, x, graph.ZerosLike(x)), axes...), graph.MaxScalar(places, 1))
	}
	return graph.ReduceMean(x, axes...)
}

// Flatten makes [batch, n] of [batch, …].
func Flatten() Layer { return made("Flatten", flatten{}) }

// Reshape gives each example other dimensions; one of them may be -1.
func Reshape(dims ...int) Layer { return made("Reshape", reshape{slices.Clone(dims)}) }

type (
	flatten struct{}
	reshape struct{ Dims []int }
)

func (flatten) Apply(_ *managed.Scope, x *managed.Node) *managed.Node {
	return reshaped("Flatten", x, -1)
}
func (r reshape) Apply(_ *managed.Scope, x *managed.Node) *managed.Node {
	return reshaped("Reshape", x, r.Dims...)
}

func reshaped(layer string, x *managed.Node, dims ...int) *managed.Node {
	if x.IsScalar() {
		panic(fmt.Errorf("%s: the input is a scalar, expected [batch, …]", layer))
	}
	return graph.Reshape(x, append([]int{x.Shape().Dimensions[0]}, dims...)...)
}

// word is where a word ends in a name such as LeakyRelu.
var word = regexp.MustCompile(`([a-z])([A-Z][a-z])`)

// activationsByName are GoMLX's, as leaky_relu, and others in place of those that Keras has otherwise: see
// [Activation].
func activationsByName() map[string]func(*managed.Node) *managed.Node {
	table := map[string]func(*managed.Node) *managed.Node{}
	for _, t := range activation.TypeValues() {
		table[strings.ToLower(word.ReplaceAllString(t.String(), "${1}_$2"))] = func(x *managed.Node) *managed.Node { return activation.Apply(t, x) }
	}
	relu6 := func(x *managed.Node) *managed.Node { return graph.MinScalar(nn.Relu(x), 6) }
	hardSigmoid := func(x *managed.Node) *managed.Node { return graph.DivScalar(relu6(graph.AddScalar(x, 3)), 6) }
	table["softmax"] = func(x *managed.Node) *managed.Node { return graph.Softmax(x) }
	table["relu"], table["relu6"], table["hard_sigmoid"] = nn.Relu, relu6, hardSigmoid
	table["hard_swish"] = func(x *managed.Node) *managed.Node { return graph.Mul(x, hardSigmoid(x)) }
	table["leaky_relu"] = func(x *managed.Node) *managed.Node { return activation.LeakyReluWith(x, 0.2) }
	return table
}

// Activation is one of GoMLX's activations by its name: "relu", "leaky_relu", "gelu", "swish", "tanh", …, or "relu6" or
// "softmax". "leaky_relu" has the slope 0.2 below 0 and "hard_sigmoid" is x/6 + 0.5 from 0 to 1; GoMLX's own, with 0.3
// and 0.2, are functions of its package activation. Where a slope breaks off to 0, as that of "relu" at 0, it is 0. An
// unknown name is an error when the model is built.
func Activation(name string) Layer { return made("Activation", activate{name}) }

type activate struct{ Name string }

func (a activate) Apply(_ *managed.Scope, x *managed.Node) *managed.Node {
	f, err := names.Find("activation", a.Name, activationsByName())
	if err != nil {
		panic(err)
	}
	return f(x)
}

// Dropout sets a share of the numbers to 0 while training, and scales the others up (Srivastava et al. 2014).
func Dropout(rate float64) Layer { return made("Dropout", dropout{rate}) }

type dropout struct{ Rate float64 }

func (d dropout) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	return nn.Dropout(scope, x, d.Rate)
}

// BatchNorm is managed.BatchNorm: GoMLX's norm.BatchNorm over the last axis, without the padding of a padded batch, and
// without the places that a mask leaves out ([MaskOf]). Its
// running averages are variables that a test step only reads, and a training step too where optim.Frozen has its scale
// and offset. They are corrected for their start, as Adam's, so that a test after the first epoch does not see a mix
// with the values that they began with.
func BatchNorm() Layer { return made("BatchNorm", batchNorm{}) }

type batchNorm struct{}

func (batchNorm) Apply(scope *managed.Scope, x *managed.Node) *managed.Node {
	return normal(func(scope *managed.Scope, wide *managed.Node) *managed.Node {
		return managed.MaskedBatchNorm(scope, wide, MaskOf(x))
	})(scope, x)
}

// LayerNorm is nn.LayerNorm, over the last axis.
func LayerNorm() Layer { return Of(nn.LayerNorm{}) }

// RMSNorm is nn.RMSNorm, over the last axis.
func RMSNorm() Layer { return Of(nn.RMSNorm{}) }

// GroupNorm is nn.GroupNorm, over the places and each of so many groups of channels: [batch, …, channels].
func GroupNorm(groups int) Layer { return Of(nn.GroupNorm{Groups: groups}) }

// Embedding is nn.Embedding, in float32 unless [WithPolicy] says another type: integers [batch, …] from 0 to
// vocabulary-1 to [batch, …, width]. Where the integers are a field of the batch, one from outside is an error
// ([ErrLabelRange]); where they are computed, its vector is NaN. One with a Padding ([Of]) makes the mask of a
// sequence: see [MaskOf].
func Embedding(vocabulary, width int) Layer {
	return Of(nn.Embedding{Vocabulary: vocabulary, Width: width})
}

func embedded(e nn.Embedding, scope *managed.Scope, x *managed.Node) *managed.Node {
	if !x.DType().IsInt() {
		panic(fmt.Errorf("Embedding in %s: the input is %s, expected integers from 0 to %d: give the field as []int32", scope.Scope(), x.Shape(), e.Vocabulary-1))
	}
	e.DType = cmp.Or(e.DType, dtypeOf(scope, x))
	y := e.Apply(scope, x)
	if t := traceOf(scope, x); t.fieldOf(x) != "" {
		t.seen.take(bound{field: t.fieldOf(x), kind: "integer", input: true, high: float64(e.Vocabulary - 1), class: true,
			why: fmt.Sprintf("the Embedding has %d", e.Vocabulary), hint: "make its vocabulary larger, or number from 0"})
	}
	if e.Padding != nil && x.Rank() == 2 {
		mask := graph.NotEqual(x, graph.Scalar(x.Graph(), x.DType(), *e.Padding))
		if given := MaskOf(x); given != nil {
			mask = graph.LogicalAnd(mask, given)
		}
		masks(x)[y] = mask
	}
	return y
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
