package pretrained

import "github.com/lazo-ml/lazo/nn"

func llama(c *config) *family {
	c.only("pretraining_tp", "1")
	c.only("original_max_position_embeddings")
	d := decoderOf(c, 0, 0, (*config).rates)
	d.bias = c.flag("attention_bias", false)
	d.outputBias, d.gateBias = d.bias, c.flag("mlp_bias", false)
	return d.classifiers(d.family("Llama"), c)
}

func mistral(c *config) *family {
	d := decoderOf(c, 8, 0, (*config).rates)
	window := c.window()
	d.window = func(int) int { return window }
	return d.classifiers(d.family("Mistral"), c)
}

func qwen2(c *config) *family {
	d := decoderOf(c, 32, 0, (*config).rates)
	d.bias, d.window = true, c.qwenWindows(d.layers)
	return d.classifiers(d.family("Qwen2"), c)
}

func qwen3(c *config) *family {
	d := decoderOf(c, 32, 128, (*config).rates)
	d.bias, d.window = c.flag("attention_bias", false), c.qwenWindows(d.layers)
	d.outputBias, d.headNorm = d.bias, &nn.RMSNorm{Epsilon: d.epsilon}
	return d.classifiers(d.family("Qwen3"), c)
}
