package pretrained

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

// distilBERT is BERT without types, pooler and dropout after attention. Sinusoidal positions are a table in files, too.
func distilBERT(c *config) *family {
	c.encoder()
	e := encoder{
		vocabulary: c.size("vocab_size", 0), width: c.size("dim", 0), inner: c.size("hidden_dim", 0), heads: c.size("n_heads", 0),
		layers: c.size("n_layers", 0), places: c.size("max_position_embeddings", 0), epsilon: 1e-12, dropout: c.rate("dropout", 0.1),
		scoresDropout: c.rate("attention_dropout", 0.1), deviation: c.positive("initializer_range", 0.02),
		activation: c.activation("activation", "gelu"), chosen: c.chosen, untied: c.untied(),
	}
	e.padding = c.id("pad_token_id", 0, e.vocabulary)
	c.divides("n_heads", e.heads, "dim", e.width)
	dropout := c.rate("seq_classif_dropout", 0.2)
	const of = "transformer.layer.#."
	f := &family{class: "DistilBert", prefix: "distilbert.", layers: e.layers, dtype: e.dtype}
	f.body = append([]module{
		{"embeddings.word_embeddings", "words", table(e.vocabulary, e.width)},
		{"embeddings.position_embeddings", "positions", table(e.places, e.width)},
		{"embeddings.LayerNorm", "norm", norm(e.width)},
	}, e.rows(of+"attention.q_lin", of+"attention.k_lin", of+"attention.v_lin", of+"attention.out_lin", of+"sa_layer_norm",
		of+"ffn.lin1", of+"ffn.lin2", of+"output_layer_norm")...)
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		ids := in.ids(idsInput)
		x := nn.Positions{Length: e.places}.Apply(s.In("positions"), e.embed(s.In("words"), ids, e.vocabulary, e.padding))
		return e.encode(s, e.embedded(s, x), in.mask(ids), nil, f.first)
	}
	modules := []module{{"pre_classifier", "dense", linear(e.width, e.width)}, {"classifier", "classifier", linear(e.width, c.classes)}}
	f.heads = map[task]head{
		classification: {modules: modules, first: true, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			x := nn.Relu(e.draw(s.In("dense"), first(hidden), e.width))
			return logits(e.draw(s.In("classifier"), nn.Dropout{Rate: dropout}.Apply(s, x), c.classes))
		}},
		tokens:   e.tokens(e.dropout, c.classes),
		answers:  e.answers(c.rate("qa_dropout", 0.1)),
		maskedLM: e.words("vocab_transform", "vocab_layer_norm", "vocab_projector", e.activation),
	}
	return f
}
