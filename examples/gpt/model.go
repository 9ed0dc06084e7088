package main

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// model is a transformer: [batch, places] of tokens to a logit for each token at each place.
type model struct{ vocabulary, width, heads, blocks, window int }

func (m model) logits(scope *managed.Scope, ids *managed.Node) *managed.Node {
	return m.apply(scope, ids, func(attention nn.Attention, scope *managed.Scope, x *managed.Node, block int) *managed.Node {
		return attention.Apply(scope, x)
	})
}

// decode is logits for tokens that follow those of the caches, one for each block: a prompt, or one token. The caches
// are changed to those that have the tokens too.
func (m model) decode(scope *managed.Scope, ids *managed.Node, caches []nn.Cache) *managed.Node {
	return m.apply(scope, ids, func(attention nn.Attention, scope *managed.Scope, x *managed.Node, block int) (y *managed.Node) {
		y, caches[block] = attention.Decode(scope, x, caches[block])
		return y
	})
}

func (m model) apply(scope *managed.Scope, ids *managed.Node, attend func(nn.Attention, *managed.Scope, *managed.Node, int) *managed.Node) *managed.Node {
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

func (m model) attention() nn.Attention {
	return nn.Attention{Heads: m.heads, Causal: true, Rotary: 1e4, NoBias: true}
}
