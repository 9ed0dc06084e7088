package pretrained

import (
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/nn"
)

func (c *config) within(name string, read func(in *config)) {
	fields, err := object(c.fields[name])
	if err != nil {
		c.fail(name, "an object")
		return
	}
	in := &config{file: c.file, fields: fields}
	if read(in); in.err != nil {
		c.err = collected(c.err, fmt.Errorf("%s: %w", name, in.err))
	}
}

func (c *config) rates(width int) (rates, _ []float64) {
	c.only("partial_rotary_factor", "1", "1.0")
	base, places := c.positive("rope_theta", 1e4), c.positive("max_position_embeddings", 2048)
	name := c.ropeField()
	if rates = nn.RotaryRates(base, width); !c.has(name) {
		return rates, nil
	}
	c.within(name, func(in *config) {
		for _, kind := range []string{fullAttention, slidingAttention} {
			in.only(kind)
		}
		rates = in.scaled(base, places, width)
	})
	return rates, nil
}

func (c *config) scaled(base, places float64, width int) []float64 {
	c.only("partial_rotary_factor", "1", "1.0")
	rates := nn.RotaryRates(c.positive("rope_theta", base), width)
	kind := c.ropeKind()
	switch c.text(kind, "default") {
	case "default":
	case "linear":
		factor := c.needed("factor")
		for i := range rates {
			rates[i] /= factor
		}
	case "llama3":
		c.smooth(rates, places)
	default:
		c.fail(kind, `"default", "linear" or "llama3": others are not implemented`)
	}
	return rates
}

func (c *config) ropeField() string {
	if name := "rope_scaling"; c.has(name) { // the older name, which transformers prefers
		return name
	}
	return "rope_parameters"
}

func (c *config) ropeKind() string {
	if !c.has("rope_type") && c.has("type") {
		return "type"
	}
	return "rope_type"
}

const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)

func (c *config) needed(name string) float64 {
	if !c.has(name) {
		c.fail(name, "a number above 0")
		return 1
	}
	return c.positive(name, 1)
}

// smooth divides slow rates by a factor, and those between slow and fast by a part of it, as Llama 3.1.
func (c *config) smooth(rates []float64, places float64) {
	factor, slow, fast := c.needed("factor"), c.needed("low_freq_factor"), c.needed("high_freq_factor")
	places = c.positive("original_max_position_embeddings", places)
	if !(fast > slow) {
		c.fail("high_freq_factor", "a number above low_freq_factor")
		return
	}
	for i, rate := range rates {
		turns := places * rate / (2 * math.Pi)
		part := min(max((turns-slow)/(fast-slow), 0), 1)
		rates[i] = (1-part)*rate/factor + part*rate
	}
}

func (c *config) window() int {
	if _, there := c.fields["sliding_window"]; there && !c.has("sliding_window") {
		return 0
	}
	return c.size("sliding_window", 4096)
}

func (c *config) qwenWindows(layers int) func(layer int) int {
	window, first := 0, 28
	if c.flag("use_sliding_window", false) {
		window = c.window()
	}
	if c.has("max_window_layers") {
		first = int(c.number("max_window_layers", 0, func(x float64) bool { return x == math.Trunc(x) && x >= 0 && x <= mostSize }, "a whole number"))
	}
	return c.windows(layers, window, func(layer int) bool { return layer >= first })
}

func (c *config) windows(layers, window int, standard func(layer int) bool) func(layer int) int {
	kinds := c.texts("layer_types")
	if kinds == nil {
		return func(layer int) int {
			if !standard(layer) {
				return 0
			}
			return window
		}
	}
	if len(kinds) != layers {
		c.fail("layer_types", "a kind for each of %d layers", layers)
		return func(int) int { return 0 }
	}
	of := make([]int, len(kinds))
	for i, kind := range kinds {
		switch {
		case kind == slidingAttention && window > 0:
			of[i] = window
		case kind != fullAttention:
			c.fail("layer_types", `"full_attention" or, with a sliding_window, "sliding_attention" for each layer`)
			return func(int) int { return 0 }
		}
	}
	return func(layer int) int { return of[layer] }
}
