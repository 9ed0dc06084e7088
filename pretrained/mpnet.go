package pretrained

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

// mpNet adds relative positions to the scores of attention (Song et al. 2020).
func mpNet(c *config) *family {
	const pad = 1 // fixed in transformers
	e := encoderOf(c, 1e-12, pad)
	c.only("relative_attention_num_buckets", "32")
	f := &family{class: "MPNet", prefix: "mpnet.", layers: e.layers, dtype: e.dtype, pool: e.pool, pooler: []module{{"pooler.dense", "pooler", linear(e.width, e.width)}}}
	const of = "encoder.layer.#."
	f.body = append([]module{
		{"embeddings.word_embeddings", "words", table(e.vocabulary, e.width)},
		{"embeddings.position_embeddings", "positions", table(e.places, e.width)},
		{"embeddings.LayerNorm", "norm", norm(e.width)},
		{"encoder.relative_attention_bias", "relative", table(32, e.heads)},
	}, e.rows(of+"attention.attn.q", of+"attention.attn.k", of+"attention.attn.v", of+"attention.attn.o", of+"attention.LayerNorm",
		of+"intermediate.dense", of+"output.dense", of+"output.LayerNorm")...)
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		ids := in.ids(idsInput)
		x := graph.Add(e.embed(s.In("words"), ids, e.vocabulary, pad), e.numbered(s.In("positions"), ids, pad))
		x = e.embedded(s, x)
		return e.encode(s, x, in.mask(ids), nn.RelativePositions{Heads: e.heads}.Apply(s.In("relative"), x), f.first)
	}
	f.heads = map[task]head{
		classification: e.twoLayers(e.dropout, c.classes),
		tokens:         e.tokens(e.dropout, c.classes),
		answers:        e.answers(0),
		maskedLM:       e.words("lm_head.dense", "lm_head.layer_norm", "lm_head", "gelu"),
	}
	return f
}
