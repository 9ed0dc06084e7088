package strategytest

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// layerModel is a model of a layer, and what its step takes.
type layerModel struct {
	name  string
	build managed.Build
	x     data.Field // its dimensions behind the examples
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
	add := func(name string, x data.Field, layers ...flaxlike.Layer) {
		all = append(all, layerModel{name: name, x: x, build: func(b *managed.Builder) {
			x := flaxlike.Sequential(append(layers, flaxlike.Flatten(), flaxlike.Dense(5))...).Apply(b.Scope().In("model"), b.Field("x"))
			b.Loss("loss", graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), x)))
		}})
	}
	const places, width = 12, 16
	sequence, image := data.X([]float32(nil), places, width), data.X([]float32(nil), 8, 8, 4)
	tokens, vector := data.X([]int32(nil), places), data.X([]float32(nil), width)
	masked := flaxlike.Of(nn.Embedding{Vocabulary: 50, Width: width, Padding: new(0)})
	add("Dense", vector, flaxlike.Dense(24), flaxlike.Activation("relu"))
	add("Dense of places", sequence, flaxlike.Dense(24))
	add("TimeDistributed", sequence, flaxlike.TimeDistributed(flaxlike.Dense(24)))
	add("Conv", image, flaxlike.Conv(8, 3))
	add("Conv, strides", image, flaxlike.Of(nn.Conv{Channels: 8, Window: []int{3}, Strides: []int{2}}))
	add("Conv, groups", image, flaxlike.Of(nn.Conv{Channels: 8, Window: []int{3}, Groups: 2}))
	add("Conv of a sequence", sequence, flaxlike.Conv(8, 3))
	add("DepthwiseConv", image, flaxlike.DepthwiseConv(3))
	add("DepthwiseConv, multiplier", image, flaxlike.Of(nn.DepthwiseConv{Multiplier: 2, Window: []int{3}}))
	add("SeparableConv", image, flaxlike.SeparableConv(8, 3))
	add("ConvTranspose", image, flaxlike.ConvTranspose(8, 3, 2))
	add("MaxPool", image, flaxlike.Conv(8, 3), flaxlike.MaxPool(2))
	add("MeanPool", image, flaxlike.Conv(8, 3), flaxlike.MeanPool(2))
	add("GlobalMeanPool", image, flaxlike.Conv(8, 3), flaxlike.GlobalMeanPool())
	add("GlobalMeanPool, mask", tokens, masked, flaxlike.GlobalMeanPool())
	add("BatchNorm", image, flaxlike.Conv(8, 3), flaxlike.BatchNorm())
	add("LayerNorm", sequence, flaxlike.Dense(24), flaxlike.LayerNorm())
	add("RMSNorm", sequence, flaxlike.Dense(24), flaxlike.RMSNorm())
	add("GroupNorm", image, flaxlike.Conv(8, 3), flaxlike.GroupNorm(2))
	add("Dropout", vector, flaxlike.Dense(24), flaxlike.Dropout(0.5))
	add("Embedding", tokens, flaxlike.Embedding(50, width))
	add("Embedding, mask", tokens, masked)
	add("PositionEmbedding", sequence, flaxlike.PositionEmbedding(places))
	add("Reshape", vector, flaxlike.Reshape(4, 4), flaxlike.Dense(8))
	add("Residual", vector, flaxlike.Residual(flaxlike.Dense(width)))
	add("Named", vector, flaxlike.Named("first", flaxlike.Dense(24)))
	add("L1", vector, flaxlike.L1(1e-3, flaxlike.Dense(24)))
	add("L2", vector, flaxlike.L2(1e-3, flaxlike.Dense(24)))
	add("Attention", sequence, flaxlike.Attention(2, 8))
	add("CausalAttention", sequence, flaxlike.CausalAttention(2, 8))
	add("Attention, mask", tokens, masked, flaxlike.Attention(2, 8))
	add("Attention, rotary, key heads", sequence, flaxlike.Of(nn.Attention{Heads: 4, KeyHeads: 2, Width: 8, Rotary: 1e4, Causal: true}))
	add("Attention, dropout", sequence, flaxlike.Of(nn.Attention{Heads: 2, Dropout: 0.1}))
	add("LSTM", sequence, flaxlike.LSTM(24))
	add("LSTM, all places", sequence, flaxlike.Of(nn.LSTM{Units: 24}))
	add("LSTM, both directions", sequence, flaxlike.Of(nn.LSTM{Units: 24, Bidirectional: true}))
	add("LSTM, two layers", sequence, flaxlike.Of(nn.LSTM{Units: 24, Layers: 2, Last: true}))
	add("LSTM, mask", tokens, masked, flaxlike.LSTM(24))
	add("LSTM, dropout", sequence, flaxlike.Of(nn.LSTM{Units: 24, Layers: 2, Dropout: 0.1, RecurrentDropout: 0.1}))
	add("GRU", sequence, flaxlike.GRU(24))
	add("GRU, both directions", sequence, flaxlike.Of(nn.GRU{Units: 24, Bidirectional: true}))
	add("GRU, mask", tokens, masked, flaxlike.GRU(24))
	add("GRU, reset before", sequence, flaxlike.Of(nn.GRU{Units: 24, ResetBefore: true}))
	add("SimpleRNN", sequence, flaxlike.SimpleRNN(24))
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
