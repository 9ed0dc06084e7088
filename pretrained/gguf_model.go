package pretrained

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
)

// ggufModels are model types by general.architecture, and whether rows of queries and keys are permuted. also is a
// type written as this one.
var ggufModels = map[string]struct {
	class, also string
	permuted    bool
}{"llama": {"Llama", "mistral", true}, "qwen2": {class: "Qwen2"}, "qwen3": {class: "Qwen3"}}

// ggufFields are fields of a config.json with equal keys of an architecture.
var ggufFields = map[string]string{
	"hidden_size": "embedding_length", "intermediate_size": "feed_forward_length", "num_hidden_layers": "block_count", "max_position_embeddings": "context_length",
	"num_attention_heads": "attention.head_count", "num_key_value_heads": "attention.head_count_kv", "head_dim": "attention.key_length",
	"rms_norm_eps": "attention.layer_norm_rms_epsilon", "rope_theta": "rope.freq_base",
}

const ggufTokens = "tokenizer.ggml."

var attentionProjection = regexp.MustCompile(`^model\.layers\.\d+\.self_attn\.([qk])_proj\.`)

func (g *ggufFile) model() (*config, map[string]stored, error) {
	var errs []error
	arch, _ := ggufValue[string](g, "general.architecture", &errs)
	of, known := ggufModels[arch]
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	if !known {
		return nil, nil, fmt.Errorf("general.architecture is %s, expected one of %q: others are not implemented", listed.Quoted(arch), slices.Sorted(maps.Keys(ggufModels)))
	}
	tensors, err := g.named()
	errs = append(errs, err, g.known(arch))
	fields := map[string]json.RawMessage{}
	set := func(name string, value any) {
		text, err := json.Marshal(value)
		fields[name], errs = text, append(errs, err)
	}
	take := func(name, key string) {
		if value, there := g.values[key]; there {
			set(name, value)
		}
	}
	set("model_type", arch)
	set("architectures", []string{of.class + string(causalLM)})
	for name, key := range ggufFields {
		take(name, arch+"."+key)
	}
	for _, role := range []string{"bos", "eos", "pad"} {
		take(role+"_token_id", ggufTokens+ggufRoles[role]+"_token_id")
	}
	heads, _ := ggufValue[uint64](g, arch+".attention.head_count", &errs)
	keyHeads, there := ggufValue[uint64](g, arch+".attention.head_count_kv", &errs)
	if !there {
		keyHeads = heads
		set("num_key_value_heads", keyHeads)
	}
	width, there := ggufValue[uint64](g, arch+".attention.key_length", &errs)
	if embedded, _ := ggufValue[uint64](g, arch+".embedding_length", &errs); !there && heads > 0 {
		width = embedded / heads
		set("head_dim", width)
	}
	for _, key := range []string{arch + ".attention.value_length", arch + ".rope.dimension_count"} {
		if v, has := ggufValue[uint64](g, key, &errs); has && v != width {
			errs = append(errs, fmt.Errorf("%s is %d, expected the width of a head, %d: others are not implemented", key, v, width))
		}
	}
	kind, _ := ggufValue[string](g, arch+".rope.scaling.type", &errs)
	factor, scaled := g.values[arch+".rope.scaling.factor"]
	if kind == "" && scaled {
		kind = "linear" // as llama.cpp
	}
	if kind != "" && kind != "none" {
		set("rope_scaling", map[string]any{"rope_type": kind, "factor": factor})
	}
	if _, there := tensors["rope_freqs.weight"]; there {
		errs = append(errs, errors.New("the file has the tensor \"rope_freqs.weight\", expected none: factors of rotary positions are not implemented; use the model's safetensors"))
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
	return &config{fields: fields, file: "the file's metadata"}, tensors, nil
}

// ggufKeys are an architecture's keys that are read or change no numbers, with the implemented values; nil: any value.
var ggufKeys = map[string][]any{
	"embedding_length": nil, "feed_forward_length": nil, "block_count": nil, "context_length": nil, "vocab_size": nil, "attention.head_count": nil, "attention.head_count_kv": nil,
	"attention.layer_norm_rms_epsilon": nil, "attention.key_length": nil, "attention.value_length": nil, "attention.causal": {true}, "attention.sliding_window": {uint64(0)},
	"rope.freq_base": nil, "rope.dimension_count": nil, "rope.scaling.type": nil, "rope.scaling.factor": nil, "rope.scaling.original_context_length": nil,
	"rope.scaling.finetuned": nil, "expert_count": {uint64(0)}, "expert_used_count": {uint64(0)},
}

func (g *ggufFile) known(arch string) (err error) {
	for _, key := range slices.Sorted(maps.Keys(g.values)) {
		name, of := strings.CutPrefix(key, arch+".")
		values, known := ggufKeys[name]
		if key == "split.count" {
			of, known, values = true, true, []any{uint64(0), uint64(1)}
		}
		if of && (!known || values != nil && !slices.Contains(values, g.values[key])) {
			expected := "none: the key is not implemented"
			if known {
				expected = fmt.Sprintf("%v: other values are not implemented", values[len(values)-1])
			}
			err = collected(err, fmt.Errorf("%s is %s, expected %s; use the model's safetensors", listed.Quoted(key), listed.Quoted(fmt.Sprint(g.values[key])), expected))
		}
	}
	return err
}

var ggufRoles = map[string]string{"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding", "cls": "cls", "sep": "seperator", "mask": "mask"}

const noTokenizer = "none" // as llama.cpp's

func (g *ggufFile) tokenizer() (*text.Tokenizer, error) {
	const of = ggufTokens
	var errs []error
	_, tokens := g.values[of+"tokens"]
	if model, there := g.values[of+"model"]; !there && !tokens || model == noTokenizer {
		return nil, fmt.Errorf("the file has no tokenizer: %w", fs.ErrNotExist)
	}
	v := text.Vocabulary{Special: map[string]int32{}}
	var there bool
	if v.Model, there = ggufValue[string](g, of+"model", &errs); !there && len(errs) == 0 {
		return nil, fmt.Errorf("the file has no %smodel: %w", of, fs.ErrNotExist)
	}
	v.Pre, _ = ggufValue[string](g, of+"pre", &errs)
	v.Tokens, _ = ggufValue[[]string](g, of+"tokens", &errs)
	v.Merges, _ = ggufValue[[]string](g, of+"merges", &errs)
	v.Template, _ = ggufValue[string](g, "tokenizer.chat_template", &errs)
	types, there := ggufValue[ggufNumbers](g, of+"token_type", &errs)
	if there && types.kind != 5 {
		errs = append(errs, fmt.Errorf("%stoken_type is a list of the type %d, expected 5, int32", of, types.kind))
	}
	for ; len(types.data) >= 4; types.data = types.data[4:] {
		v.Types = append(v.Types, int32(binary.LittleEndian.Uint32(types.data)))
	}
	for role, key := range ggufRoles {
		if id, there := ggufValue[uint64](g, of+key+"_token_id", &errs); there {
			v.Special[role] = int32(min(id, math.MaxInt32))
		}
	}
	if end, _ := ggufValue[bool](g, of+"add_eos_token", &errs); end {
		errs = append(errs, fmt.Errorf("%sadd_eos_token is true, expected false: a token at the end of each text is not implemented", of))
	}
	added, there := ggufValue[bool](g, of+"add_bos_token", &errs)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	v.AddBOS = added || !there && v.Pre == "llama-bpe" // Llama 3's files often lack it
	return v.Tokenizer()
}

// unpermuted has the two halves of each head's rows one after another, as transformers. In the file they alternate.
func (s stored) unpermuted(head int) stored {
	raw := s.raw
	s.raw = func(from, to int) ([]byte, error) {
		first := from / head * head
		last := min((to+head-1)/head*head, s.Dims[0])
		data, err := raw(first, max(first, last))
		if err != nil || to <= from {
			return nil, err
		}
		row := len(data) / (last - first)
		out := make([]byte, 0, (to-from)*row)
		for r := from; r < to; r++ {
			out = append(out, data[(permuted(r, head)-first)*row:][:row]...)
		}
		return out, nil
	}
	return unpacked(s)
}

func permuted(row, head int) int {
	at := row % head
	return row - at + at%(head/2)*2 + at/(head/2)
}
