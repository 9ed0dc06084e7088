package pretrained

import "github.com/lazo-ml/lazo/nn"

func gpt2(c *config) *family {
	c.encoder()
	c.only("add_cross_attention", "false")
	c.only("scale_attn_weights", "true")
	c.only("scale_attn_by_inverse_layer_idx", "false")
	c.only("reorder_and_upcast_attn", "false")
	d := decoder{encoder: encoder{
		vocabulary: c.size("vocab_size", 0), width: c.size("n_embd", 0), heads: c.size("n_head", 0), layers: c.size("n_layer", 0),
		places: c.size("n_positions", 0), padding: -1, epsilon: c.positive("layer_norm_epsilon", 1e-5), dropout: c.rate("resid_pdrop", 0.1),
		attentionDropout: c.rate("attn_pdrop", 0.1), deviation: c.positive("initializer_range", 0.02),
		activation: c.activation("activation_function", "gelu_new"), chosen: c.chosen,
	}, fused: true, bias: true, outputBias: true, gateBias: true, ungated: true, embedDropout: c.rate("embd_pdrop", 0.1),
		tied: c.flag("tie_word_embeddings", true), window: func(int) int { return 0 }}
	c.divides("n_head", d.heads, "n_embd", d.width)
	d.inner, d.keyHeads, d.headWidth = c.size("n_inner", 4*d.width), d.heads, max(1, d.width/d.heads)
	d.normal = nn.LayerNorm{Epsilon: d.epsilon}
	f := d.described("GPT2", "transformer.")
	f.body = []module{
		{"wte", "words", table(d.vocabulary, d.width)}, {"wpe", "positions", table(d.places, d.width)}, {"ln_f", "norm", norm(d.width)},
		{"h.#.ln_1", "layer_#/attention_norm", norm(d.width)},
		{"h.#.attn.c_attn", "layer_#/attention/qkv", conv1D(d.width, 3*d.width)},
		{"h.#.attn.c_proj", "layer_#/attention/output", conv1D(d.width, d.width)},
		{"h.#.ln_2", "layer_#/norm", norm(d.width)},
		{"h.#.mlp.c_fc", "layer_#/up", conv1D(d.width, d.inner)},
		{"h.#.mlp.c_proj", "layer_#/down", conv1D(d.inner, d.width)},
	}
	d.classifiers(f, c)
	f.heads[tokens] = d.tokens(c.rate("classifier_dropout", c.rate("hidden_dropout", 0.1)), c.classes)
	f.heads[answers] = d.answers(0)
	f.heads[causalLM] = f.heads[causalLM].of("GPT2" + string(lmHeadModel))
	return f
}
