package pretrained

import (
	"fmt"
	"math"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

type stack struct {
	encoder
	name              string
	headWidth         int
	buckets, distance int
	gated, decodes    bool
}

// mostStacked bounds the rows of tables that are written out.
const mostStacked = 1000

func t5(c *config) *family {
	c.only("is_encoder_decoder", "true")
	c.only("is_decoder", "false")
	c.only("pruned_heads", "{}")
	c.only("quantization_config")
	one := stack{encoder: encoder{
		vocabulary: c.size("vocab_size", 0), width: c.size("d_model", 0), inner: c.size("d_ff", 0), heads: c.size("num_heads", 0), layers: c.size("num_layers", 0),
		padding: -1, epsilon: c.positive("layer_norm_epsilon", 1e-6), dropout: c.rate("dropout_rate", 0.1), chosen: c.chosen,
	}, headWidth: c.size("d_kv", 0), buckets: c.size("relative_attention_num_buckets", 32), distance: c.size("relative_attention_max_distance", 128), name: "encoder"}
	one.readDense(c)
	if one.buckets%4 != 0 || one.distance <= one.buckets/2 {
		c.fail("relative_attention_num_buckets", "a multiple of 4 and below twice relative_attention_max_distance, %d", one.distance)
	}
	two := one
	two.name, two.decodes, two.layers = "decoder", true, c.size("num_decoder_layers", one.layers)
	if max(one.layers, two.layers) > mostStacked || max(one.heads, one.headWidth) > mostHead {
		c.fail("num_layers", "at most %d, and heads of at most %d", mostStacked, mostHead)
		one.layers, two.layers = 1, 1
	}
	f := &family{class: "T5", layers: one.layers, of: "pairs of texts", dtype: c.dtype}
	f.body = append(append([]module{{"shared", "words", table(one.vocabulary, one.width)}}, one.modules()...), two.modules()...)
	f.build = func(s *model.Scope, in inputs) *graph.Node {
		ids, next := in.ids(idsInput), in.ids("decoder_"+idsInput)
		mask, seen := in.mask(ids), in.maskOf("decoder_"+maskInput, next)
		words := func(s *model.Scope, ids *graph.Node) *graph.Node {
			return one.embed(s, ids, one.vocabulary, one.padding)
		}
		memory := one.apply(s.In("encoder"), words(s.In("words"), ids), mask, nil, nil)
		return nn.Masked(two.apply(s.In("decoder"), words(s.Shared("words"), next), seen, memory, mask), seen)
	}
	f.heads = map[task]head{seq2seqLM: one.predict(c)}
	return f
}

// predict uses the scaled embeddings in the first version, a matrix in version 1.1.
func (k stack) predict(c *config) head {
	const name = "lm_head"
	scaled := c.flag("scale_decoder_outputs", c.flag("tie_word_embeddings", true))
	_, untied := c.tensors[name+".weight"]
	if scaled && untied {
		c.fail("tie_word_embeddings", "false: the folder has the tensor %q", name+".weight")
	}
	if untied {
		return head{modules: []module{{name, name, linearNoBias(k.width, k.vocabulary)}}, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			return logits(nn.Dense{Units: k.vocabulary, NoBias: true}.Apply(s.In(name), hidden))
		}}
	}
	return head{build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		x := hidden
		if scaled {
			x = graph.MulScalar(x, 1/math.Sqrt(float64(k.width)))
		}
		return logits(nn.Masked(nn.Embedding{Vocabulary: k.vocabulary, Width: k.width, DType: k.dtype}.Logits(s.At("words"), x), nn.MaskOf(hidden)))
	}}
}

func (k *stack) readDense(c *config) {
	kind := c.text("feed_forward_proj", "relu")
	name, gated := strings.CutPrefix(kind, "gated-")
	if kind == "gated-gelu" {
		name = "gelu_new"
	}
	a, known := activations[name]
	if !known {
		c.fail("feed_forward_proj", "an activation, or gated- and an activation")
	}
	c.only("dense_act_fn", fmt.Sprintf("%q", name))
	c.only("is_gated_act", fmt.Sprint(gated))
	k.activation, k.gated = a, gated
}

// modules are written out: each stack has its own number of layers.
func (k stack) modules() (all []module) {
	heads := k.heads * k.headWidth
	attention := func(file, own string) []module {
		in := linearNoBias(k.width, heads)
		return []module{{file + ".q", own + "/query", in}, {file + ".k", own + "/key", in}, {file + ".v", own + "/value", in}, {file + ".o", own + "/output", linearNoBias(heads, k.width)}}
	}
	all = []module{
		{k.name + ".block.0.layer.0.SelfAttention.relative_attention_bias", k.name + "/relative", table(k.buckets, k.heads)},
		{k.name + ".final_layer_norm", k.name + "/norm", rms(k.width)},
	}
	for i := range k.layers {
		n, own := 0, fmt.Sprintf("%s/layer_%d/", k.name, i)
		next := func() string { n++; return fmt.Sprintf("%s.block.%d.layer.%d.", k.name, i, n-1) }
		of := next()
		all = append(append(all, attention(of+"SelfAttention", own+"attention")...), module{of + "layer_norm", own + "attention_norm", rms(k.width)})
		if k.decodes {
			of = next()
			all = append(append(all, attention(of+"EncDecAttention", own+"cross")...), module{of + "layer_norm", own + "cross_norm", rms(k.width)})
		}
		of = next()
		up := []module{{of + "DenseReluDense.wi", own + "up", linearNoBias(k.width, k.inner)}}
		if k.gated {
			up = []module{{of + "DenseReluDense.wi_0", own + "gate", linearNoBias(k.width, k.inner)}, {of + "DenseReluDense.wi_1", own + "up", linearNoBias(k.width, k.inner)}}
		}
		all = append(append(all, up...), module{of + "DenseReluDense.wo", own + "down", linearNoBias(k.inner, k.width)}, module{of + "layer_norm", own + "norm", rms(k.width)})
	}
	return all
}

func (k stack) apply(s *model.Scope, x, mask, memory, memoryMask *graph.Node) *graph.Node {
	drop := func(x *graph.Node) *graph.Node { return nn.Dropout{Rate: k.dropout}.Apply(s, x) }
	norm := func(s *model.Scope, x *graph.Node) *graph.Node { return nn.RMSNorm{Epsilon: k.epsilon}.Apply(s, x) }
	dense := func(s *model.Scope, units int, x *graph.Node) *graph.Node {
		return nn.Dense{Units: units, NoBias: true}.Apply(s, x)
	}
	a := nn.Attention{Heads: k.heads, Width: k.headWidth, Scale: 1, Dropout: k.dropout, NoBias: true}
	self, cross := a, a
	self.Causal, self.Mask, cross.Mask = k.decodes, mask, memoryMask
	self.Bias = nn.RelativePositions{Heads: k.heads, Buckets: k.buckets, Distance: k.distance, Causal: k.decodes}.Apply(s.In("relative"), x)
	x = drop(x)
	for i := range k.layers {
		s := s.In("layer_%d", i)
		x = k.layer(x, func(x *graph.Node) *graph.Node {
			x = graph.Add(x, drop(self.Apply(s.In("attention"), norm(s.In("attention_norm"), x))))
			if memory != nil {
				x = graph.Add(x, drop(cross.Cross(s.In("cross"), norm(s.In("cross_norm"), x), memory)))
			}
			y := norm(s.In("norm"), x)
			up := dense(s.In("up"), k.inner, y)
			if k.gated {
				up = graph.Mul(k.activation.Apply(s, dense(s.In("gate"), k.inner, y)), up)
			} else {
				up = k.activation.Apply(s, up)
			}
			return graph.Add(x, drop(dense(s.In("down"), k.width, drop(up))))
		})
	}
	return drop(norm(s.In("norm"), x))
}
