package pretrained

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

func roberta(c *config) *family { return robertaOf(c, "Roberta") }

func xlmRoberta(c *config) *family { return robertaOf(c, "XLMRoberta") }

// robertaOf is BERT with positions that begin after the padding's id, and without a pooler in heads.
func robertaOf(c *config, class string) *family {
	e := encoderOf(c, 1e-5, 1)
	e.types = c.size("type_vocab_size", 2)
	if e.padding < 0 {
		c.fail("pad_token_id", "a token: positions begin after its id")
	}
	dropout := c.rate("classifier_dropout", e.dropout)
	f := &family{class: class, prefix: "roberta.", layers: e.layers, dtype: e.dtype, types: e.types > 1, pool: e.pool, pooler: []module{{"pooler.dense", "pooler", linear(e.width, e.width)}}}
	f.body = bertRows(e)
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		ids := in.ids(idsInput)
		types := graph.ZerosLike(ids) // the only type of tokenizers
		if f.types {
			types = in.ids(typesInput)
		}
		x := graph.Add(e.embed(s.In("words"), ids, e.vocabulary, e.padding), e.embed(s.In("types"), types, e.types, -1))
		x = graph.Add(x, e.numbered(s.In("positions"), ids, e.padding))
		return e.encode(s, e.embedded(s, x), in.mask(ids), nil, f.first)
	}
	f.heads = map[task]head{
		classification: e.twoLayers(dropout, c.classes),
		tokens:         e.tokens(dropout, c.classes),
		answers:        e.answers(0),
		maskedLM:       e.words("lm_head.dense", "lm_head.layer_norm", "lm_head", "gelu"),
	}
	return f
}
