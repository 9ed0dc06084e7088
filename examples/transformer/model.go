package main

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/gomlx/gomlx/ml/layers/norm"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
)

const (
	width   = 32
	heads   = 4
	longest = 16 // sentences may have so many words, padding included
)

// step is the training and the test step. A field that a batch lacks is an error that names it.
func step(b *managed.Builder) {
	ids, mask, labels := b.Node("input_ids"), b.Node("attention_mask"), b.Node("labels")
	logits := model(b.Scope(), ids, mask)

	b.Loss("loss", managed.MaskedMean(managed.CrossEntropies(labels, logits), mask)) // over the tokens that count
	b.Track("accuracy", metrics.Accuracy(), mask, labels, logits)
}

// model gives a logit for each name at each token: [batch, time] to [batch, time, names].
func model(scope *managed.Scope, ids, mask *managed.Node) *managed.Node {
	places := graph.Iota(ids.Graph(), ids.Shape(), 1)
	x := graph.Add(
		layers.Embedding(scope.In("words"), ids, dtypes.Float32, len(vocabulary), width),
		layers.Embedding(scope.In("places"), places, dtypes.Float32, longest, width))
	for _, name := range []string{"block_0", "block_1"} {
		x = block(scope.In("%s", name), x, mask)
	}
	return layers.Dense(scope.In("logits"), norm.LayerNorm(scope.In("norm"), x, -1).Done(), true, len(names))
}

// block is attention among the tokens that count, then two dense layers for each token, each added to what came in.
func block(scope *managed.Scope, x, mask *managed.Node) *managed.Node {
	h := norm.LayerNorm(scope.In("norm_0"), x, -1).Done()
	h = attention.MultiHeadAttention(scope.In("attention"), h, h, h, heads, width/heads).WithKeyMask(mask).WithOutputDim(width).Done()
	x = graph.Add(x, layers.DropoutStatic(scope, h, 0.1)) // in training alone, and other numbers in each step
	h = norm.LayerNorm(scope.In("norm_1"), x, -1).Done()
	h = activation.Relu(layers.Dense(scope.In("dense_0"), h, true, 4*width))
	return graph.Add(x, layers.Dense(scope.In("dense_1"), h, true, width))
}
