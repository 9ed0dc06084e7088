package pretrained

import (
	"math"

	"github.com/lazo-ml/lazo/nn"
)

// gemma reads what Gemma 2 and 3 share: norms by 1 + scale around attention and dense layers, scaled embeddings, and
// windows in all layers but each of a pattern.
func gemma(c *config, pattern int, rates func(c *config, width int) (all, local []float64)) decoder {
	d := decoderOf(c, 4, 256, rates)
	c.only("use_bidirectional_attention", "false")
	d.activation = c.activation("hidden_activation", "gelu_pytorch_tanh")
	d.tied, d.padding = c.flag("tie_word_embeddings", true), c.id("pad_token_id", 0, d.vocabulary)
	d.bias = c.flag("attention_bias", false)
	d.outputBias, d.sandwich, d.normal = d.bias, true, nn.RMSNorm{Epsilon: d.epsilon, OnePlus: true}
	d.scale, d.embeddedScale = 1/math.Sqrt(c.positive("query_pre_attn_scalar", 256)), math.Sqrt(float64(d.width))
	window := c.window()
	if window == 0 {
		c.fail("sliding_window", "a number of places")
	}
	d.window = c.windows(d.layers, window, func(layer int) bool { return (layer+1)%pattern != 0 })
	return d
}

func gemma2(c *config) *family {
	d := gemma(c, 2, (*config).rates)
	d.scoresCap, d.logitsCap = c.limit("attn_logit_softcapping", 50), c.limit("final_logit_softcapping", 30)
	return d.classifiers(d.family("Gemma2"), c)
}

// gemma3 is of texts alone. transformers ignores attn_logit_softcapping.
func gemma3(c *config) *family {
	d := gemma(c, c.size("sliding_window_pattern", 6), (*config).ratesByKind)
	c.only("attn_logit_softcapping")
	d.logitsCap, d.headNorm = c.limit("final_logit_softcapping", 0), &nn.RMSNorm{Epsilon: d.epsilon, OnePlus: true}
	f := d.classifiers(d.family("Gemma3Text"), c)
	f.heads[causalLM] = f.heads[causalLM].of("Gemma3" + string(causalLM))
	delete(f.heads, tokens)
	return f
}

func (c *config) limit(name string, standard float64) float64 {
	if _, there := c.fields[name]; there && !c.has(name) || !there && standard == 0 {
		return 0
	}
	return c.positive(name, standard)
}

func (c *config) ratesByKind(width int) (all, local []float64) {
	places, base, localBase := c.positive("max_position_embeddings", 1<<17), c.positive("rope_theta", 1e6), c.positive("rope_local_base_freq", 1e4)
	all, local = nn.RotaryRates(base, width), nn.RotaryRates(localBase, width)
	read := func(in *config, kind string, base float64, rates *[]float64) {
		if in.has(kind) {
			in.within(kind, func(in *config) { *rates = in.scaled(base, places, width) })
		}
	}
	if c.has("rope_parameters") {
		c.only("rope_scaling")
		c.within("rope_parameters", func(in *config) {
			for _, name := range []string{"rope_type", "type", "rope_theta", "factor"} {
				in.only(name) // in the objects
			}
			read(in, fullAttention, base, &all)
			read(in, slidingAttention, localBase, &local)
		})
	}
	read(c, "rope_scaling", base, &all) // older files
	return all, local
}
