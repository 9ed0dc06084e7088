package strategytest

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

// layerModel is a model of a layer, and what its step takes.
type layerModel struct {
	name  string
	build managed.Build
	x     data.Field // dims without the examples
	y     []int      // those of the classes
}

// batch is one of zeros.
func (m layerModel) batch(t *testing.T, examples int) data.Batch {
	x := m.x
	x.Array.Dims = slices.Concat([]int{examples}, x.Array.Dims)
	b, err := managed.ZeroBatch(x, data.Y([]int32(nil), slices.Concat([]int{examples}, m.y)...))
	require.NoError(t, err)
	return b
}

// layerModels has each layer of flaxlike, those of package nn among them, with the settings that make another program.
func layerModels() (all []layerModel) {
	add := func(name string, x data.Field, layers ...nn.Layer) {
		all = append(all, layerModel{name: name, x: x, build: func(b *managed.Builder) {
			x := nn.Sequential(append(layers, nn.Flatten{}, nn.Dense{Units: 5})).Apply(b.Scope().In("model"), b.Field("x"))
			b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), x)))
		}})
	}
	const places, width = 12, 16
	sequence, image := data.X([]float32(nil), places, width), data.X([]float32(nil), 8, 8, 4)
	tokens, vector := data.X([]int32(nil), places), data.X([]float32(nil), width)
	masked := nn.Embedding{Vocabulary: 50, Width: width, Padding: new(0)}
	add("Dense", vector, nn.Dense{Units: 24}, nn.Activation("relu"))
	add("Dense of places", sequence, nn.Dense{Units: 24})
	add("TimeDistributed", sequence, nn.TimeDistributed{Layer: nn.Dense{Units: 24}})
	add("Conv", image, nn.Conv{Channels: 8, Window: []int{3}})
	add("Conv, strides", image, nn.Conv{Channels: 8, Window: []int{3}, Strides: []int{2}})
	add("Conv, groups", image, nn.Conv{Channels: 8, Window: []int{3}, Groups: 2})
	add("Conv of a sequence", sequence, nn.Conv{Channels: 8, Window: []int{3}})
	add("DepthwiseConv", image, nn.DepthwiseConv{Window: []int{3}})
	add("DepthwiseConv, multiplier", image, nn.DepthwiseConv{Multiplier: 2, Window: []int{3}})
	add("SeparableConv", image, nn.SeparableConv{Channels: 8, Window: []int{3}})
	add("ConvTranspose", image, nn.ConvTranspose{Channels: 8, Window: []int{3}, Strides: []int{2}})
	add("MaxPool", image, nn.Conv{Channels: 8, Window: []int{3}}, nn.MaxPool{Window: 2})
	add("MeanPool", image, nn.Conv{Channels: 8, Window: []int{3}}, nn.MeanPool{Window: 2})
	add("GlobalMeanPool", image, nn.Conv{Channels: 8, Window: []int{3}}, nn.GlobalMeanPool{})
	add("GlobalMeanPool, mask", tokens, masked, nn.GlobalMeanPool{})
	add("GlobalMaxPool, mask", tokens, masked, nn.GlobalMaxPool{})
	add("BatchNorm", image, nn.Conv{Channels: 8, Window: []int{3}}, nn.BatchNorm{})
	add("LayerNorm", sequence, nn.Dense{Units: 24}, nn.LayerNorm{})
	add("RMSNorm", sequence, nn.Dense{Units: 24}, nn.RMSNorm{})
	add("GroupNorm", image, nn.Conv{Channels: 8, Window: []int{3}}, nn.GroupNorm{Groups: 2})
	add("Dropout", vector, nn.Dense{Units: 24}, nn.Dropout{Rate: 0.5})
	add("Embedding", tokens, nn.Embedding{Vocabulary: 50, Width: width})
	add("Embedding, mask", tokens, masked)
	add("PositionEmbedding", sequence, nn.Positions{Length: places})
	add("Reshape", vector, nn.Reshape{4, 4}, nn.Dense{Units: 8})
	add("Residual", vector, nn.Residual{nn.Dense{Units: width}})
	add("Named", vector, nn.Named{Name: "first", Layer: nn.Dense{Units: 24}})
	add("L1", vector, nn.L1{Rate: 1e-3, Layers: []nn.Layer{nn.Dense{Units: 24}}})
	add("L2", vector, nn.L2{Rate: 1e-3, Layers: []nn.Layer{nn.Dense{Units: 24}}})
	add("WindowScale", sequence, nn.WindowScale{Of: 1, Layers: []nn.Layer{nn.LastStep{}, nn.Dense{Units: 24}}})
	add("Attention", sequence, nn.Attention{Heads: 2, Width: 8})
	add("CausalAttention", sequence, nn.Attention{Heads: 2, Width: 8, Causal: true})
	add("Attention, mask", tokens, masked, nn.Attention{Heads: 2, Width: 8})
	add("Attention, rotary, key heads", sequence, nn.Attention{Heads: 4, KeyHeads: 2, Width: 8, Rotary: 1e4, Causal: true})
	add("Attention, dropout", sequence, nn.Attention{Heads: 2, Dropout: 0.1})
	add("LSTM", sequence, nn.LSTM{Units: 24, Last: true})
	add("LSTM, all places", sequence, nn.LSTM{Units: 24})
	add("LSTM, both directions", sequence, nn.LSTM{Units: 24, Bidirectional: true})
	add("LSTM, two layers", sequence, nn.LSTM{Units: 24, Layers: 2, Last: true})
	add("LSTM, mask", tokens, masked, nn.LSTM{Units: 24, Last: true})
	add("LSTM, dropout", sequence, nn.LSTM{Units: 24, Layers: 2, Dropout: 0.1, RecurrentDropout: 0.1})
	add("GRU", sequence, nn.GRU{Units: 24, Last: true})
	add("GRU, both directions", sequence, nn.GRU{Units: 24, Bidirectional: true})
	add("GRU, mask", tokens, masked, nn.GRU{Units: 24, Last: true})
	add("GRU, reset before", sequence, nn.GRU{Units: 24, ResetBefore: true})
	add("SimpleRNN", sequence, nn.SimpleRNN{Units: 24, Last: true})
	return append(all, layerModel{name: "tied embeddings", x: tokens, y: []int{places}, build: tied})
}

// tied has one table at both ends, whose gradients come from both.
func tied(b *managed.Builder) {
	scope := b.Scope()
	embedding := nn.Embedding{Vocabulary: 50, Width: 16}
	x := embedding.Apply(scope.In("tokens"), b.Field("x"))
	logits := graph.LogSoftmax(embedding.Logits(scope.Shared("tokens"), x))
	b.Loss("loss", graph.Neg(graph.ReduceAllMean(graph.Mul(logits, graph.OneHot(b.Field("y"), 50, dtypes.Float32)))))
}
