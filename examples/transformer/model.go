package main

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/losses"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
)

const (
	width   = 32
	heads   = 4
	longest = 16 // sentences may have so many words, padding included
)

// step is the training and the test step. A field that a batch lacks is an error that names it.
func step(b *managed.Builder) {
	ids, mask, labels := b.Field("input_ids"), b.Field("attention_mask"), b.Field("labels")
	logits := network(b.Scope(), ids, mask)

	b.Loss("loss", losses.MaskedMean(losses.CrossEntropy(labels, logits), mask)) // over the tokens that count
	b.Track("accuracy", metrics.Accuracy(), mask, labels, logits)
}

// network gives a logit for each name at each token: [batch, time] to [batch, time, names].
func network(scope *model.Scope, ids, mask *graph.Node) *graph.Node {
	x := nn.Embedding{Vocabulary: len(vocabulary), Width: width}.Apply(scope.In("words"), ids)
	x = nn.Positions{Length: longest}.Apply(scope.In("places"), x)
	for _, name := range []string{"block_0", "block_1"} {
		x = block(scope.In("%s", name), x, mask)
	}
	return nn.Dense{Units: len(names)}.Apply(scope.In("logits"), nn.LayerNorm{}.Apply(scope.In("norm"), x))
}

// block is attention among the tokens that count, then two dense layers for each token, each added to what came in.
func block(scope *model.Scope, x, mask *graph.Node) *graph.Node {
	h := nn.LayerNorm{}.Apply(scope.In("norm_0"), x)
	h = nn.Attention{Heads: heads, Mask: mask}.Apply(scope.In("attention"), h)
	x = graph.Add(x, nn.Dropout{Rate: 0.1}.Apply(scope, h)) // in training alone, and other numbers in each step
	h = nn.LayerNorm{}.Apply(scope.In("norm_1"), x)
	h = nn.Relu(nn.Dense{Units: 4 * width}.Apply(scope.In("dense_0"), h))
	return graph.Add(x, nn.Dense{Units: width}.Apply(scope.In("dense_1"), h))
}
