package pretrained

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

func bert(c *config) *family {
	e := encoderOf(c, 1e-12, 0)
	e.types = c.size("type_vocab_size", 2)
	dropout := c.rate("classifier_dropout", e.dropout)
	f := &family{class: "Bert", prefix: "bert.", layers: e.layers, dtype: e.dtype, types: true, pool: e.pool, pooler: []module{{"pooler.dense", "pooler", linear(e.width, e.width)}}}
	f.body = bertRows(e)
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		ids := in.ids(idsInput)
		x := graph.Add(e.embed(s.In("words"), ids, e.vocabulary, e.padding), e.embed(s.In("types"), in.ids(typesInput), e.types, -1))
		x = nn.Positions{Length: e.places}.Apply(s.In("positions"), x)
		return e.encode(s, e.embedded(s, x), in.mask(ids), nil, f.first)
	}
	f.heads = map[task]head{
		classification: {pooled: true, first: true, modules: []module{{"classifier", "classifier", linear(e.width, c.classes)}}, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			x := nn.Dropout{Rate: dropout}.Apply(s, e.pool(s, hidden))
			return logits(e.draw(s.In("classifier"), x, c.classes))
		}},
		tokens:   e.tokens(dropout, c.classes),
		answers:  e.answers(0),
		maskedLM: e.words("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions", e.activation),
	}
	return f
}

func bertRows(e encoder) []module {
	const of = "encoder.layer.#."
	return append([]module{
		{"embeddings.word_embeddings", "words", table(e.vocabulary, e.width)},
		{"embeddings.position_embeddings", "positions", table(e.places, e.width)},
		{"embeddings.token_type_embeddings", "types", table(e.types, e.width)},
		{"embeddings.LayerNorm", "norm", norm(e.width)},
	}, e.rows(of+"attention.self.query", of+"attention.self.key", of+"attention.self.value", of+"attention.output.dense", of+"attention.output.LayerNorm",
		of+"intermediate.dense", of+"output.dense", of+"output.LayerNorm")...)
}
