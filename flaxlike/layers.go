package flaxlike

import (
	"slices"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// The constructors are names for the layers of package nn.
type (
	Layer = nn.Layer
	Func  = nn.Func
)

func Sequential(layers ...Layer) Layer           { return nn.Sequential(slices.Clone(layers)) }
func Residual(layers ...Layer) Layer             { return nn.Residual(slices.Clone(layers)) }
func Named(name string, layer Layer) Layer       { return nn.Named{Name: name, Layer: layer} }
func L1(rate float64, layers ...Layer) Layer     { return nn.L1{Rate: rate, Layers: slices.Clone(layers)} }
func L2(rate float64, layers ...Layer) Layer     { return nn.L2{Rate: rate, Layers: slices.Clone(layers)} }
func TimeDistributed(layer Layer) Layer          { return nn.TimeDistributed{Layer: layer} }
func MaskOf(x *managed.Node) *managed.Node       { return nn.MaskOf(x) }
func Masked(x, mask *managed.Node) *managed.Node { return nn.Masked(x, mask) }

type Settings interface {
	nn.Dense | nn.Conv | nn.DepthwiseConv | nn.SeparableConv | nn.ConvTranspose | nn.LayerNorm | nn.RMSNorm | nn.GroupNorm | nn.Embedding | nn.Positions |
		nn.LSTM | nn.GRU | nn.SimpleRNN | nn.Attention
	nn.Layer
}

func Of[S Settings](settings S) Layer { return settings }
func Dense(units int) Layer           { return nn.Dense{Units: units} }
func Conv(channels, kernel int) Layer { return nn.Conv{Channels: channels, Window: []int{kernel}} }
func DepthwiseConv(kernel int) Layer  { return nn.DepthwiseConv{Window: []int{kernel}} }
func SeparableConv(channels, kernel int) Layer {
	return nn.SeparableConv{Channels: channels, Window: []int{kernel}}
}
func ConvTranspose(channels, kernel, stride int) Layer {
	return nn.ConvTranspose{Channels: channels, Window: []int{kernel}, Strides: []int{stride}}
}
func MaxPool(window int) Layer     { return nn.MaxPool{Window: window} }
func MeanPool(window int) Layer    { return nn.MeanPool{Window: window} }
func GlobalMeanPool() Layer        { return nn.GlobalMeanPool{} }
func Flatten() Layer               { return nn.Flatten{} }
func Reshape(dims ...int) Layer    { return nn.Reshape(slices.Clone(dims)) }
func Activation(name string) Layer { return nn.Activation(name) }
func Dropout(rate float64) Layer   { return nn.Dropout{Rate: rate} }
func BatchNorm() Layer             { return nn.BatchNorm{} }
func LayerNorm() Layer             { return nn.LayerNorm{} }
func RMSNorm() Layer               { return nn.RMSNorm{} }
func GroupNorm(groups int) Layer   { return nn.GroupNorm{Groups: groups} }
func Embedding(vocabulary, width int) Layer {
	return nn.Embedding{Vocabulary: vocabulary, Width: width}
}
func Attention(heads, width int) Layer { return nn.Attention{Heads: heads, Width: width} }
func CausalAttention(heads, width int) Layer {
	return nn.Attention{Heads: heads, Width: width, Causal: true}
}
func PositionEmbedding(length int) Layer { return nn.Positions{Length: length} }
func LSTM(units int) Layer               { return nn.LSTM{Units: units, Last: true} }
func GRU(units int) Layer                { return nn.GRU{Units: units, Last: true} }
func SimpleRNN(units int) Layer          { return nn.SimpleRNN{Units: units, Last: true} }
