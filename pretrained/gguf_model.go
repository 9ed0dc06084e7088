package pretrained

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
)

// ggufModels are model types by general.architecture, and whether the rows of queries and keys are permuted.
var ggufModels = map[string]struct{ permuted bool }{"llama": {true}, "qwen2": {}, "qwen3": {}}

var attentionProjection = regexp.MustCompile(`^model\.layers\.\d+\.self_attn\.([qk])_proj\.`)

// model returns the fields of a config.json and the tensors as transformers has them.
func (g *ggufFile) model() (*config, map[string]stored, error) {
	arch, _ := g.values["general.architecture"].(string)
	of, known := ggufModels[arch]
	if !known {
		return nil, nil, fmt.Errorf("general.architecture is %s, expected one of %q: others are not implemented", listed.Quoted(arch), slices.Sorted(maps.Keys(ggufModels)))
	}
	tensors := g.named()
	fields := map[string]json.RawMessage{}
	var errs []error
	set := func(name string, value any) {
		text, err := json.Marshal(value)
		fields[name], errs = text, append(errs, err)
	}
	take := func(name, key string) (value any) {
		if value = g.values[key]; value != nil {
			set(name, value)
		}
		return value
	}
	set("model_type", arch)
	set("architectures", []string{map[string]string{"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}[arch] + string(causalLM)})
	take("hidden_size", arch+".embedding_length")
	take("intermediate_size", arch+".feed_forward_length")
	take("num_hidden_layers", arch+".block_count")
	heads, _ := take("num_attention_heads", arch+".attention.head_count").(uint64)
	keyHeads, there := take("num_key_value_heads", arch+".attention.head_count_kv").(uint64)
	if !there {
		keyHeads = heads
		set("num_key_value_heads", heads)
	}
	take("rms_norm_eps", arch+".attention.layer_norm_rms_epsilon")
	take("rope_theta", arch+".rope.freq_base")
	take("max_position_embeddings", arch+".context_length")
	take("pad_token_id", "tokenizer.ggml.padding_token_id")
	take("bos_token_id", "tokenizer.ggml.bos_token_id")
	take("eos_token_id", "tokenizer.ggml.eos_token_id")
	width := take("head_dim", arch+".attention.key_length")
	if embedded, ok := g.values[arch+".embedding_length"].(uint64); ok && width == nil && heads > 0 {
		width = embedded / heads
		set("head_dim", width)
	}
	same := func(key string) {
		if v := g.values[key]; v != nil && v != width {
			errs = append(errs, fmt.Errorf("%s is %v, expected the width of a head, %v: others are not implemented", key, v, width))
		}
	}
	same(arch + ".attention.value_length")
	same(arch + ".rope.dimension_count")
	scaling := map[string]any{}
	if kind, _ := g.values[arch+".rope.scaling.type"].(string); kind != "" && kind != "none" {
		scaling["rope_type"], scaling["factor"] = kind, g.values[arch+".rope.scaling.factor"]
		set("rope_scaling", scaling)
	}
	if _, there := tensors["rope_freqs.weight"]; there {
		errs = append(errs, errors.New("the file has the tensor \"rope_freqs.weight\", expected none: factors of rotary positions are not implemented; use the model's safetensors"))
	}
	if window := g.values[arch+".attention.sliding_window"]; window != nil && window != uint64(0) {
		errs = append(errs, fmt.Errorf("%s.attention.sliding_window is %v, expected 0: windows of GGUF files are not implemented; use the model's safetensors", arch, window))
	}
	if words, there := tensors["model.embed_tokens.weight"]; there {
		set("vocab_size", words.Dims[0])
	}
	_, untied := tensors["lm_head.weight"]
	set("tie_word_embeddings", !untied)
	_, biased := tensors["model.layers.0.self_attn.q_proj.bias"]
	set("attention_bias", biased)
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if of.permuted {
		for name, t := range tensors {
			if query := attentionProjection.FindStringSubmatch(name); query != nil {
				n := map[string]uint64{"q": heads, "k": keyHeads}[query[1]]
				if n == 0 || n > uint64(t.Dims[0]) || uint64(t.Dims[0])%(2*n) != 0 {
					return nil, nil, fmt.Errorf("the tensor %s has %d rows, expected a multiple of twice the %d heads", listed.Quoted(name), t.Dims[0], n)
				}
				tensors[name] = t.unpermuted(t.Dims[0] / int(n))
			}
		}
	}
	return &config{fields: fields}, tensors, nil
}

// ggufRoles are the keys of special tokens by their roles.
var ggufRoles = map[string]string{"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "cls": "cls", "sep": "seperator", "mask": "mask"}

func (g *ggufFile) tokenizer() (*text.Tokenizer, error) {
	const of = "tokenizer.ggml."
	v := text.Vocabulary{Special: map[string]int32{}}
	v.Model, _ = g.values[of+"model"].(string)
	v.Pre, _ = g.values[of+"pre"].(string)
	v.Tokens, _ = g.values[of+"tokens"].([]string)
	v.Merges, _ = g.values[of+"merges"].([]string)
	v.Template, _ = g.values["tokenizer.chat_template"].(string)
	for types, _ := g.values[of+"token_type"].(ggufNumbers); len(types.data) >= 4; types.data = types.data[4:] {
		v.Types = append(v.Types, int32(binary.LittleEndian.Uint32(types.data)))
	}
	for role, key := range ggufRoles {
		if id, there := g.values[of+key+"_token_id"].(uint64); there {
			v.Special[role] = int32(min(id, math.MaxInt32))
		}
	}
	if end, _ := g.values[of+"add_eos_token"].(bool); end {
		return nil, fmt.Errorf("%sadd_eos_token is true, expected false: a token at the end of each text is not implemented", of)
	}
	added, there := g.values[of+"add_bos_token"].(bool)
	v.AddBOS = added || !there && v.Pre == "llama-bpe" // Llama 3's files often lack the key
	return v.Tokenizer()
}

// unpermuted has the two halves of each head's rows one after another, as transformers. In the file they alternate.
func (s stored) unpermuted(head int) stored {
	return stored{s.Tensor, func(from, to int) ([]byte, error) {
		first := from / head * head
		last := min((to+head-1)/head*head, s.Dims[0])
		data, err := s.rows(first, max(first, last))
		if err != nil || to <= from {
			return nil, err
		}
		row := len(data) / (last - first)
		out := make([]byte, 0, (to-from)*row)
		for r := from; r < to; r++ {
			at := r % head
			at = r - at + at%(head/2)*2 + at/(head/2) - first
			out = append(out, data[at*row:][:row]...)
		}
		return out, nil
	}}
}
