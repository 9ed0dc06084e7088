package pretrained

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

// decoder has the settings and layers of Llama and its relatives. Each place sees itself and earlier ones.
type decoder struct {
	encoder
	keyHeads, headWidth         int
	rates                       []float64           // of rotary positions
	localRates                  []float64           // of layers with a window; nil: rates
	window                      func(layer int) int // 0: all earlier places
	fused                       bool                // queries, keys and values
	bias, outputBias, gateBias  bool
	ungated                     bool
	normal                      nn.Layer
	headNorm                    *nn.RMSNorm
	sandwich                    bool // also normalizes afterwards
	scale, scoresCap, logitsCap float64
	embeddedScale, embedDropout float64
	tied                        bool // output and embeddings
}

// decoderOf's keyHeads and headWidth are standards, 0 for those that follow from others.
func decoderOf(c *config, keyHeads, headWidth int, rates func(c *config, width int) (all, local []float64)) decoder {
	c.encoder()
	d := decoder{encoder: encoder{
		vocabulary: c.size("vocab_size", 0), width: c.size("hidden_size", 0), inner: c.size("intermediate_size", 0),
		heads: c.size("num_attention_heads", 0), layers: c.size("num_hidden_layers", 0),
		epsilon: c.positive("rms_norm_eps", 1e-6), attentionDropout: c.rate("attention_dropout", 0),
		deviation: c.positive("initializer_range", 0.02), activation: c.activation("hidden_act", "silu"), chosen: c.chosen,
	}, tied: c.flag("tie_word_embeddings", false), window: func(int) int { return 0 }}
	d.padding, d.normal = c.id("pad_token_id", -1, d.vocabulary), nn.RMSNorm{Epsilon: d.epsilon}
	if _, there := c.fields["num_key_value_heads"]; keyHeads == 0 || there {
		keyHeads = d.heads // also for null
	}
	d.keyHeads = c.size("num_key_value_heads", keyHeads)
	c.divides("num_key_value_heads", d.keyHeads, "num_attention_heads", d.heads)
	if headWidth == 0 {
		c.divides("num_attention_heads", d.heads, "hidden_size", d.width)
		headWidth = max(1, d.width/d.heads)
	}
	d.headWidth = c.size("head_dim", headWidth)
	if d.headWidth%2 != 0 || d.headWidth > mostHead || d.heads > mostHead {
		c.fail("head_dim", "an even number up to %d, and as many heads at most", mostHead)
	} else {
		d.rates, d.localRates = rates(c, d.headWidth)
	}
	return d
}

// mostHead bounds the products of sizes, and the rates.
const mostHead = 1 << 14

func (d decoder) described(class, prefix string) *family {
	f := &family{class: class, prefix: prefix, layers: d.layers, places: d.places, dtype: d.dtype, build: d.build, decode: d.decode, caches: d.caches}
	capped := func(x, hidden *graph.Node) map[string]*graph.Node {
		if d.logitsCap > 0 {
			x = nn.SoftCap(x, d.logitsCap)
		}
		return logits(nn.Masked(x, nn.MaskOf(hidden)))
	}
	f.heads = map[task]head{causalLM: {build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		return capped(nn.Embedding{Vocabulary: d.vocabulary, Width: d.width, DType: d.dtype}.Logits(s.At("words"), hidden), hidden)
	}}}
	if !d.tied {
		f.heads[causalLM] = head{modules: []module{{"lm_head", "lm_head", linearNoBias(d.width, d.vocabulary)}}, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			return capped(nn.Dense{Units: d.vocabulary, NoBias: true, Kernel: nn.RandomNormal(d.deviation)}.Apply(s.In("lm_head"), hidden), hidden)
		}}
	}
	return f
}

func (d decoder) family(class string) *family {
	f := d.described(class, "model.")
	f.decoder = &d
	f.body = []module{{"embed_tokens", "words", table(d.vocabulary, d.width)}, {"norm", "norm", rms(d.width)}}
	add := func(file, own string, parts []part) {
		f.body = append(f.body, module{"layers.#." + file, "layer_#/" + own, parts})
	}
	dense := func(file, own string, in, out int, bias bool) {
		parts := linear(in, out)
		if !bias {
			parts = linearNoBias(in, out)
		}
		add(file, own, parts)
	}
	dense("self_attn.q_proj", "attention/query", d.width, d.heads*d.headWidth, d.bias)
	dense("self_attn.k_proj", "attention/key", d.width, d.keyHeads*d.headWidth, d.bias)
	dense("self_attn.v_proj", "attention/value", d.width, d.keyHeads*d.headWidth, d.bias)
	dense("self_attn.o_proj", "attention/output", d.heads*d.headWidth, d.width, d.outputBias)
	if d.headNorm != nil {
		add("self_attn.q_norm", "attention/query_norm", rms(d.headWidth))
		add("self_attn.k_norm", "attention/key_norm", rms(d.headWidth))
	}
	dense("mlp.gate_proj", "gate", d.width, d.inner, d.gateBias)
	dense("mlp.up_proj", "up", d.width, d.inner, d.gateBias)
	dense("mlp.down_proj", "down", d.inner, d.width, d.gateBias)
	add("input_layernorm", "attention_norm", rms(d.width))
	if !d.sandwich {
		add("post_attention_layernorm", "norm", rms(d.width))
		return f
	}
	add("post_attention_layernorm", "attended_norm", rms(d.width))
	add("pre_feedforward_layernorm", "norm", rms(d.width))
	add("post_feedforward_layernorm", "dense_norm", rms(d.width))
	return f
}

func (d decoder) classifiers(f *family, c *config) *family {
	dropout := c.rate("classifier_dropout", c.rate("hidden_dropout", 0.1))
	f.heads[classification] = head{modules: []module{{"score", "score", linearNoBias(d.width, c.classes)}}, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		return logits(nn.Dense{Units: c.classes, NoBias: true, Kernel: nn.RandomNormal(d.deviation)}.Apply(s.In("score"), last(hidden)))
	}}
	f.heads[tokens] = head{modules: []module{{"score", "score", linear(d.width, c.classes)}}, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		return logits(d.draw(s.In("score"), nn.Dropout{Rate: dropout}.Apply(s, hidden), c.classes))
	}}
	return f
}

func last(x *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	at := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims[0], dims[1]), 1)
	seen := graph.Where(nn.MaskOf(x), at, graph.ZerosLike(at))
	return place(x, graph.ReduceMax(seen, 1))
}

func place(x, number *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	at := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims[0], dims[1]), 1)
	chosen := graph.Equal(at, graph.BroadcastToDims(graph.ExpandAxes(number, -1), dims[0], dims[1]))
	return graph.ReduceSum(graph.Where(graph.BroadcastToDims(graph.ExpandAxes(chosen, -1), dims...), x, graph.ZerosLike(x)), 1)
}

func (d decoder) build(s *model.Scope, in inputs) *graph.Node {
	ids := in.ids(idsInput)
	mask, keys, numbers := in.texts(ids)
	x := d.begin(s, ids, nil, numbers)
	for i := range d.layers {
		a := d.attention(i)
		a.Mask = keys
		x = d.layer(x, func(x *graph.Node) *graph.Node { return d.block(s.In("layer_%d", i), x, a.Apply) })
	}
	return nn.Masked(d.norm(s.In("norm"), x), mask)
}

// begin embeds tokens at the places numbers or, if nil, from start on. Rotary positions need no numbers: they compare
// places.
func (d decoder) begin(s *model.Scope, ids, start, numbers *graph.Node) *graph.Node {
	x := d.embed(s.In("words"), ids, d.vocabulary, d.padding)
	if d.embeddedScale != 0 {
		x = graph.MulScalar(x, d.embeddedScale)
	}
	switch {
	case d.places > 0 && numbers != nil:
		x = d.position(s.In("positions"), x, numbers)
	case d.places > 0:
		x = nn.Positions{Length: d.places, Start: start}.Apply(s.In("positions"), x)
	}
	return nn.Dropout{Rate: d.embedDropout}.Apply(s, x)
}

func (d decoder) attention(layer int) nn.Attention {
	a := nn.Attention{
		Heads: d.heads, KeyHeads: d.keyHeads, Width: d.headWidth, Causal: true, Rates: d.rates, Window: d.window(layer), Dropout: d.attentionDropout,
		Scale: d.scale, Cap: d.scoresCap, HeadNorm: d.headNorm, Fused: d.fused, NoBias: !d.bias, NoOutputBias: !d.outputBias,
	}
	if a.Window > 0 && d.localRates != nil {
		a.Rates = d.localRates
	}
	return a
}

// block normalizes first.
func (d decoder) block(s *model.Scope, x *graph.Node, attend func(s *model.Scope, x *graph.Node) *graph.Node) *graph.Node {
	x = d.add(s, x, attend(s.In("attention"), d.norm(s.In("attention_norm"), x)), "attended_norm")
	return d.feed(s, x)
}

func (d decoder) add(s *model.Scope, x, y *graph.Node, after string) *graph.Node {
	if d.sandwich {
		y = d.norm(s.In("%s", after), y)
	}
	return graph.Add(x, nn.Dropout{Rate: d.dropout}.Apply(s, y))
}

func (d decoder) feed(s *model.Scope, x *graph.Node) *graph.Node {
	y := d.norm(s.In("norm"), x)
	dense := func(name string, x *graph.Node, units int) *graph.Node {
		return nn.Dense{Units: units, NoBias: !d.gateBias}.Apply(s.In("%s", name), x)
	}
	if d.ungated {
		y = d.activation.Apply(s, dense("up", y, d.inner))
	} else {
		y = graph.Mul(d.activation.Apply(s, dense("gate", y, d.inner)), dense("up", y, d.inner))
	}
	return d.add(s, x, dense("down", y, d.width), "dense_norm")
}

func (d decoder) norm(s *model.Scope, x *graph.Node) *graph.Node { return d.normal.Apply(s, x) }
