package main

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

const (
	width   = 32
	heads   = 4
	longest = 16 // words with padding
)

func step(b *managed.Builder) {
	ids, mask, labels := b.Field("input_ids"), b.Field("attention_mask"), b.Field("labels")
	logits := network(b.Scope(), ids, mask)

	b.Loss("loss", losses.MaskedMean(losses.CrossEntropy(labels, logits), mask)) // over unmasked tokens
	b.Track("accuracy", metrics.Accuracy(), mask, labels, logits)
}

// network maps tokens [batch, time] to logits per name, [batch, time, names].
func network(scope *model.Scope, ids, mask *graph.Node) *graph.Node {
	x := nn.Embedding{Vocabulary: len(vocabulary), Width: width}.Apply(scope.In("words"), ids)
	x = nn.Positions{Length: longest}.Apply(scope.In("places"), x)
	for _, name := range []string{"block_0", "block_1"} {
		x = block(scope.In("%s", name), x, mask)
	}
	return nn.Dense{Units: len(names)}.Apply(scope.In("logits"), nn.LayerNorm{}.Apply(scope.In("norm"), x))
}

// block is masked attention and a feed-forward part, both residual.
func block(scope *model.Scope, x, mask *graph.Node) *graph.Node {
	h := nn.LayerNorm{}.Apply(scope.In("norm_0"), x)
	h = nn.Attention{Heads: heads, Mask: mask}.Apply(scope.In("attention"), h)
	x = graph.Add(x, nn.Dropout{Rate: 0.1}.Apply(scope, h))
	h = nn.LayerNorm{}.Apply(scope.In("norm_1"), x)
	h = nn.Relu(nn.Dense{Units: 4 * width}.Apply(scope.In("dense_0"), h))
	return graph.Add(x, nn.Dense{Units: width}.Apply(scope.In("dense_1"), h))
}
