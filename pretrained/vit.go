package pretrained

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

func vit(c *config) *family {
	c.encoder()
	c.only("qkv_bias", "true")
	c.only("pooler_act", `"tanh"`)
	height, width := c.pair("image_size", 224)
	down, across := c.pair("patch_size", 16)
	channels := c.size("num_channels", 3)
	// Layers of decoders normalize before attention, too.
	d := decoder{encoder: encoder{
		width: c.size("hidden_size", 0), inner: c.size("intermediate_size", 0), heads: c.size("num_attention_heads", 0), layers: c.size("num_hidden_layers", 0),
		places: 1 + height/down*(width/across), epsilon: c.positive("layer_norm_eps", 1e-12), dropout: c.rate("hidden_dropout_prob", 0),
		scoresDropout: c.rate("attention_probs_dropout_prob", 0), deviation: c.positive("initializer_range", 0.02),
		activation: c.activation("hidden_act", "gelu"), chosen: c.chosen,
	}, gateBias: true, ungated: true}
	d.normal = nn.LayerNorm{Epsilon: d.epsilon}
	c.divides("num_attention_heads", d.heads, "hidden_size", d.width)
	if c.size("pooler_output_size", d.width) != d.width {
		c.fail("pooler_output_size", "%d, as hidden_size: others are not implemented", d.width)
	}
	if down > height || across > width {
		c.fail("patch_size", "at most image_size, %d by %d", height, width)
	}
	images := c.pixels(height, width, channels)
	f := &family{class: "ViT", prefix: "vit.", layers: d.layers, of: "images", renamed: true, dtype: d.dtype, pool: d.pool, pooler: []module{{"pooler.dense", "pooler", linear(d.width, d.width)}}}
	const of = "encoder.layer.#."
	f.body = []module{
		{"embeddings.patch_embeddings.projection", "patches", conv(channels, d.width, down, across)},
		{"embeddings", "class", []part{{file: "cls_token", own: "token", dims: []int{1, 1, d.width}}}},
		{"embeddings", "positions", []part{{file: "position_embeddings", own: "embeddings", dims: []int{1, d.places, d.width}, shape: []int{d.places, d.width}}}},
		{"layernorm", "norm", norm(d.width)},
		{of + "attention.attention.query", "layer_#/attention/query", linear(d.width, d.width)},
		{of + "attention.attention.key", "layer_#/attention/key", linear(d.width, d.width)},
		{of + "attention.attention.value", "layer_#/attention/value", linear(d.width, d.width)},
		{of + "attention.output.dense", "layer_#/attention/output", linear(d.width, d.width)},
		{of + "intermediate.dense", "layer_#/up", linear(d.width, d.inner)},
		{of + "output.dense", "layer_#/down", linear(d.inner, d.width)},
		{of + "layernorm_before", "layer_#/attention_norm", norm(d.width)},
		{of + "layernorm_after", "layer_#/norm", norm(d.width)},
	}
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		x := d.patched(s, images.of(in), down, across, false)
		x = nn.Dropout{Rate: d.dropout}.Apply(s, x)
		for i := range d.layers {
			x = d.layer(x, func(x *graph.Node) *graph.Node {
				return d.block(s.In("layer_%d", i), x, nn.Attention{Heads: d.heads, Dropout: d.scoresDropout}.Apply)
			})
		}
		return d.norm(s.In("norm"), x)
	}
	f.heads = map[task]head{classification: head{modules: []module{{"classifier", "classifier", linear(d.width, c.classes)}},
		build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			return logits(d.draw(s.In("classifier"), first(hidden), c.classes))
		}}.of("ViT" + string(imageClasses))}
	return f
}

func (d decoder) patched(s *model.Scope, x *graph.Node, down, across int, noBias bool) *graph.Node {
	x = nn.Conv{Channels: d.width, Window: []int{down, across}, Strides: []int{down, across}, Valid: true, NoBias: noBias, Kernel: notGiven}.Apply(s.In("patches"), x)
	batch := x.Shape().Dimensions[0]
	x = graph.Reshape(x, batch, d.places-1, d.width)
	token := s.In("class").WithInitializer(notGiven).VariableWithShape("token", shapes.Make(x.DType(), 1, 1, d.width)).NodeValue(x.Graph())
	x = graph.Concatenate([]*graph.Node{graph.BroadcastToDims(token, batch, 1, d.width), x}, 1)
	return nn.Positions{Length: d.places}.Apply(s.In("positions"), x)
}
