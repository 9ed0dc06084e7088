package main

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

// network is a transformer from tokens [batch, places] to each place's logits.
type network struct{ vocabulary, width, heads, blocks, window int }

func (m network) logits(scope *model.Scope, ids *graph.Node) *graph.Node {
	return m.apply(scope, ids, func(attention nn.Attention, scope *model.Scope, x *graph.Node, block int) *graph.Node {
		return attention.Apply(scope, x)
	})
}

// decode returns logits for tokens after those of the caches, one per block, which it updates.
func (m network) decode(scope *model.Scope, ids *graph.Node, caches []nn.Cache) *graph.Node {
	return m.apply(scope, ids, func(attention nn.Attention, scope *model.Scope, x *graph.Node, block int) (y *graph.Node) {
		y, caches[block] = attention.Decode(scope, x, caches[block])
		return y
	})
}

func (m network) apply(scope *model.Scope, ids *graph.Node, attend func(nn.Attention, *model.Scope, *graph.Node, int) *graph.Node) *graph.Node {
	tokens := nn.Embedding{Vocabulary: m.vocabulary, Width: m.width}
	x := tokens.Apply(scope.In("tokens"), ids)
	for i := range m.blocks {
		s := scope.In("block_%d", i)
		h := nn.RMSNorm{}.Apply(s.In("norm_0"), x)
		x = graph.Add(x, attend(m.attention(), s.In("attention"), h, i))
		h = nn.RMSNorm{}.Apply(s.In("norm_1"), x)
		h = nn.Activation("gelu").Apply(s, nn.Dense{Units: 4 * m.width, NoBias: true}.Apply(s.In("wide"), h))
		x = graph.Add(x, nn.Dense{Units: m.width, NoBias: true}.Apply(s.In("narrow"), h))
	}
	return tokens.Logits(scope.Shared("tokens"), nn.RMSNorm{}.Apply(scope.In("norm"), x))
}

func (m network) attention() nn.Attention {
	return nn.Attention{Heads: m.heads, Causal: true, Rotary: 1e4, NoBias: true}
}
