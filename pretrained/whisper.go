package pretrained

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

const featuresInput = "input_features"

// whisper's encoder has untrained positions.
func whisper(c *config) *family {
	c.only("is_encoder_decoder", "true")
	c.only("quantization_config")
	c.only("tie_word_embeddings", "true")
	c.only("apply_spec_augment", "false")
	c.zero("activation_dropout", "encoder_layerdrop", "decoder_layerdrop")
	bands, width, dropout := c.size("num_mel_bins", 80), c.size("d_model", 384), c.rate("dropout", 0)
	half := func(name string, places int) decoder {
		d := decoder{encoder: encoder{
			width: width, inner: c.size(name+"_ffn_dim", 1536), heads: c.size(name+"_attention_heads", 6), layers: c.size(name+"_layers", 4), places: places,
			epsilon: 1e-5, dropout: dropout, scoresDropout: c.rate("attention_dropout", 0), activation: c.activation("activation_function", "gelu"), chosen: c.chosen,
		}, gateBias: true, ungated: true, embedDropout: dropout}
		d.normal = nn.LayerNorm{Epsilon: d.epsilon}
		c.divides(name+"_attention_heads", d.heads, "d_model", width)
		if d.layers > mostStacked {
			c.fail(name+"_layers", "at most %d", mostStacked)
			d.layers = 1
		}
		return d
	}
	one, two := half("encoder", c.size("max_source_positions", 1500)), half("decoder", c.size("max_target_positions", 448))
	two.vocabulary = c.size("vocab_size", 51865)
	two.padding = c.id("pad_token_id", 50256, two.vocabulary)
	f := &family{class: "Whisper", prefix: "model.", of: "sounds and texts", dtype: c.dtype}
	f.body = append([]module{
		{"decoder.embed_tokens", "decoder/words", table(two.vocabulary, width)},
		{"decoder.embed_positions", "decoder/positions", table(two.places, width)},
		{"decoder.layer_norm", "decoder/norm", norm(width)},
		{"encoder.conv1", "encoder/first", conv1(bands, width, 3)},
		{"encoder.conv2", "encoder/second", conv1(width, width, 3)},
		{"encoder.embed_positions", "encoder/positions", table(one.places, width)},
		{"encoder.layer_norm", "encoder/norm", norm(width)},
	}, append(one.whisperRows("encoder", false), two.whisperRows("decoder", true)...)...)
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		ids := in.ids("decoder_" + idsInput)
		seen := in.maskOf("decoder_"+maskInput, ids)
		at := s.In("encoder")
		x := graph.ConvertDType(one.features(in, bands), c.dtype)
		for i, name := range []string{"first", "second"} {
			convolved := nn.Conv{Channels: width, Window: []int{3}, Strides: []int{1 + i}, Valid: true, Padding: []int{1}, Kernel: notGiven}.Apply(at.In("%s", name), x)
			x = nn.Activation("gelu").Apply(at, convolved)
		}
		positions := at.In("positions").WithInitializer(notGiven).VariableWithShape("embeddings", shapes.Make(c.dtype, one.places, width)).SetTrainable(false)
		x = nn.Dropout{Rate: dropout}.Apply(at, graph.Add(x, graph.ExpandAxes(positions.NodeValue(x.Graph()), 0)))
		for i := range one.layers {
			x = one.layer(x, func(x *graph.Node) *graph.Node {
				return one.block(at.In("layer_%d", i), x, nn.Attention{Heads: one.heads, Dropout: one.scoresDropout, NoKeyBias: true}.Apply)
			})
		}
		memory := one.norm(at.In("norm"), x)
		at = s.In("decoder")
		x = two.begin(at, ids, nil, nil)
		for i := range two.layers {
			s, a := at.In("layer_%d", i), nn.Attention{Heads: two.heads, Dropout: two.scoresDropout, NoKeyBias: true}
			self := a
			self.Causal, self.Mask = true, seen
			x = two.layer(x, func(x *graph.Node) *graph.Node {
				x = two.add(s, x, self.Apply(s.In("attention"), two.norm(s.In("attention_norm"), x)), "")
				x = two.add(s, x, a.Cross(s.In("cross"), two.norm(s.In("cross_norm"), x), memory), "")
				return two.feed(s, x)
			})
		}
		return nn.Masked(two.norm(at.In("norm"), x), seen)
	}
	f.heads = map[task]head{seq2seqLM: {build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		words := nn.Embedding{Vocabulary: two.vocabulary, Width: width, DType: c.dtype}
		return logits(nn.Masked(words.Logits(s.At("decoder").At("words"), hidden), nn.MaskOf(hidden)))
	}}}
	return f
}

// features are as many frames as the encoder has positions after its stride of 2.
func (d decoder) features(in inputs, bands int) *graph.Node {
	x := in(featuresInput)
	if !x.DType().IsFloat() || x.Rank() != 3 || x.Shape().Dimensions[1] != 2*d.places || x.Shape().Dimensions[2] != bands {
		panic(fmt.Errorf("pretrained: the input %q is %s, expected floating-point numbers [batch, %d, %d]: frames and bands", featuresInput, x.Shape(), 2*d.places, bands))
	}
	return x
}

func (d decoder) whisperRows(half string, cross bool) (all []module) {
	for i := range d.layers {
		add := func(file, own string, parts []part) {
			all = append(all, module{fmt.Sprintf("%s.layers.%d.%s", half, i, file), fmt.Sprintf("%s/layer_%d/%s", half, i, own), parts})
		}
		attention := func(file, own string) {
			square := linear(d.width, d.width)
			add(file+".q_proj", own+"/query", square)
			add(file+".k_proj", own+"/key", linearNoBias(d.width, d.width))
			add(file+".v_proj", own+"/value", square)
			add(file+".out_proj", own+"/output", square)
			add(file+"_layer_norm", own+"_norm", norm(d.width))
		}
		if attention("self_attn", "attention"); cross {
			attention("encoder_attn", "cross")
		}
		add("final_layer_norm", "norm", norm(d.width))
		add("fc1", "up", linear(d.width, d.inner))
		add("fc2", "down", linear(d.inner, d.width))
	}
	return all
}
