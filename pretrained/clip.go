package pretrained

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

func tower(c *config, name string, width, inner, heads int, more func(in *config, d *decoder)) decoder {
	if c.has(name + "_dict") {
		name += "_dict" // of older files, which transformers prefers
	}
	d := decoder{gateBias: true, ungated: true}
	read := func(in *config) {
		d.encoder = encoder{
			width: in.size("hidden_size", width), inner: in.size("intermediate_size", inner), heads: in.size("num_attention_heads", heads), layers: in.size("num_hidden_layers", 12),
			epsilon: in.positive("layer_norm_eps", 1e-5), scoresDropout: in.rate("attention_dropout", 0), activation: in.activation("hidden_act", "quick_gelu"),
			chosen: c.chosen, padding: -1,
		}
		d.normal = nn.LayerNorm{Epsilon: d.epsilon}
		in.divides("num_attention_heads", d.heads, "hidden_size", d.width)
		if d.layers > mostStacked {
			in.fail("num_hidden_layers", "at most %d", mostStacked)
			d.layers = 1
		}
		more(in, &d)
	}
	if c.has(name) {
		c.within(name, read)
	} else {
		in := &config{}
		read(in)
	}
	return d
}

func (d decoder) towerRows(file, own string) (all []module) {
	for i := range d.layers {
		add := func(name, at string, parts []part) {
			all = append(all, module{fmt.Sprintf("%s.encoder.layers.%d.%s", file, i, name), fmt.Sprintf("%s/layer_%d/%s", own, i, at), parts})
		}
		square := linear(d.width, d.width)
		add("self_attn.q_proj", "attention/query", square)
		add("self_attn.k_proj", "attention/key", square)
		add("self_attn.v_proj", "attention/value", square)
		add("self_attn.out_proj", "attention/output", square)
		add("layer_norm1", "attention_norm", norm(d.width))
		add("layer_norm2", "norm", norm(d.width))
		add("mlp.fc1", "up", linear(d.width, d.inner))
		add("mlp.fc2", "down", linear(d.inner, d.width))
	}
	return all
}

func (d decoder) tower(s *model.Scope, x, mask *graph.Node, causal bool) *graph.Node {
	for i := range d.layers {
		x = d.layer(x, func(x *graph.Node) *graph.Node {
			return d.block(s.In("layer_%d", i), x, nn.Attention{Heads: d.heads, Causal: causal, Mask: mask, Dropout: d.scoresDropout}.Apply)
		})
	}
	return x
}

func clip(c *config) *family {
	c.encoder()
	end, patch, size, channels := 0, 1, 1, 3
	texts := tower(c, "text_config", 512, 2048, 8, func(in *config, d *decoder) {
		d.vocabulary, d.places = in.size("vocab_size", 49408), in.size("max_position_embeddings", 77)
		end = in.id("eos_token_id", 49407, 1<<30)
	})
	pictures := tower(c, "vision_config", 768, 3072, 12, func(in *config, d *decoder) {
		size, patch, channels = in.size("image_size", 224), in.size("patch_size", 32), in.size("num_channels", 3)
		if d.places = 1 + size/patch*(size/patch); patch > size {
			in.fail("patch_size", "at most image_size, %d", size)
		}
	})
	width, images := c.size("projection_dim", 512), c.pixels(size, size, channels)
	f := &family{class: "CLIP", of: "texts and images", dtype: c.dtype}
	f.body = append([]module{
		{"text_model.embeddings.token_embedding", "texts/words", table(texts.vocabulary, texts.width)},
		{"text_model.embeddings.position_embedding", "texts/positions", table(texts.places, texts.width)},
		{"text_model.final_layer_norm", "texts/norm", norm(texts.width)},
		{"vision_model.embeddings.patch_embedding", "images/patches", conv(channels, pictures.width, patch, patch)[:1]},
		{"vision_model.embeddings", "images/class", []part{{file: "class_embedding", own: "token", dims: []int{pictures.width}, shape: []int{1, 1, pictures.width}}}},
		{"vision_model.embeddings.position_embedding", "images/positions", table(pictures.places, pictures.width)},
		{"vision_model.pre_layrnorm", "images/first_norm", norm(pictures.width)},
		{"vision_model.post_layernorm", "images/norm", norm(pictures.width)},
		{"text_projection", "texts/projection", linearNoBias(texts.width, width)},
		{"visual_projection", "images/projection", linearNoBias(pictures.width, width)},
		{"", "similarity", []part{{file: "logit_scale", own: "scale", dims: []int{}}}},
	}, append(texts.towerRows("text_model", "texts"), pictures.towerRows("vision_model", "images")...)...)
	project := func(s *model.Scope, x *graph.Node) *graph.Node {
		y := nn.Dense{Units: width, NoBias: true, Kernel: notGiven}.Apply(s.In("projection"), x)
		return graph.Div(y, graph.Sqrt(graph.ReduceAndKeep(graph.Square(y), graph.ReduceSum, -1)))
	}
	f.outputs = func(s *model.Scope, in inputs) map[string]*graph.Node {
		ids := in.ids(idsInput)
		at := s.In("texts")
		x := texts.norm(at.In("norm"), texts.tower(at, texts.begin(at, ids, nil, nil), in.mask(ids), true))
		text := project(at, place(x, ended(ids, end)))
		at = s.In("images")
		x = pictures.norm(at.In("first_norm"), pictures.patched(at, images.of(in), patch, patch, true))
		image := project(at, pictures.norm(at.In("norm"), first(pictures.tower(at, x, nil, false))))
		scale := s.In("similarity").WithInitializer(notGiven).VariableWithShape("scale", shapes.Make(text.DType())).NodeValue(text.Graph())
		logits := graph.Mul(graph.Dot(text, graph.Transpose(image, 0, 1)).Product(), graph.Exp(scale))
		return map[string]*graph.Node{"text_embeds": text, "image_embeds": image, "logits_per_text": logits, "logits_per_image": graph.Transpose(logits, 0, 1)}
	}
	f.heads = map[task]head{}
	return f
}

// ended is the place of the token that ends each text: the first with this id, in older files the greatest id.
func ended(ids *graph.Node, end int) *graph.Node {
	if end != 2 {
		ids = graph.ConvertDType(graph.Equal(ids, graph.Scalar(ids.Graph(), ids.DType(), end)), dtypes.Int32)
	}
	return graph.ArgMax(ids, -1, dtypes.Int32)
}
