package text

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Vocabulary is a tokenizer in a GGUF's metadata.
type Vocabulary struct {
	// Model is tokenizer.ggml.model: "gpt2", BPE of bytes. Others are errors.
	Model string
	// Pre is tokenizer.ggml.pre, the way to divide texts: "gpt-2", "smollm", "llama-bpe", "qwen2" and others.
	Pre string
	// Tokens, Types and Merges are tokenizer.ggml's tokens, token_type and merges. A token of the type 5, unused, is an
	// id without a token.
	Tokens []string
	Types  []int32
	Merges []string
	// Special has tokenizer.ggml's token ids by role, like "bos", "eos", "pad" and "unk".
	Special map[string]int32
	// AddBOS is add_bos_token.
	AddBOS bool
	// Template is tokenizer.chat_template.
	Template string
}

const (
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

type preTokenizer struct {
	digits  bool
	pattern string // "" for GPT-2's
	nfc     bool
	whole   bool
}

var preTokenizers = map[string]preTokenizer{
	"gpt-2": {}, "smollm": {digits: true}, "starcoder": {digits: true}, "refact": {digits: true}, "codeshell": {digits: true},
	"llama-bpe": {pattern: llama3Pattern, whole: true}, "qwen2": {pattern: qwen2Pattern, nfc: true},
}

// distinct is for Tokenizer.Vocabulary; others divide texts as one of them.
var distinct = []string{"gpt-2", "smollm", "llama-bpe", "qwen2"}

const (
	normalToken      = 1
	controlToken     = 3
	userDefinedToken = 4
	unusedToken      = 5
)

// Tokenizer has the ids of the model's tokenizer.json.
func (v Vocabulary) Tokenizer() (*Tokenizer, error) {
	t, err := v.tokenizer()
	if err != nil {
		return nil, fmt.Errorf("text: the vocabulary of a GGUF: %w", err)
	}
	return t, nil
}

func (v Vocabulary) tokenizer() (*Tokenizer, error) {
	pre, known := preTokenizers[v.Pre]
	if v.Model != "gpt2" || !known {
		return nil, fmt.Errorf("its model is %s and its pre-tokenizer %s, expected gpt2, and gpt-2, smollm, starcoder, refact, codeshell, llama-bpe or qwen2", quoted(v.Model), quoted(v.Pre))
	}
	if len(v.Types) != len(v.Tokens) {
		return nil, fmt.Errorf("it has %d types of %d tokens", len(v.Types), len(v.Tokens))
	}
	vocab := make(map[string]int32, len(v.Tokens))
	f := file{Version: "1.0", AddedTokens: []addedToken{}}
	for i, name := range v.Tokens {
		if _, twice := vocab[name]; twice || !utf8.ValidString(name) {
			return nil, fmt.Errorf("the token %s appears twice, or is not valid UTF-8", quoted(name))
		}
		if v.Types[i] == unusedToken {
			continue
		}
		vocab[name] = int32(i)
		switch v.Types[i] {
		case normalToken:
		case controlToken, userDefinedToken:
			f.AddedTokens = append(f.AddedTokens, addedToken{ID: int32(i), Content: name, Special: v.Types[i] == controlToken})
		default:
			return nil, fmt.Errorf("the token %s has the type %d, expected 1 (normal), 3 (control), 4 (user-defined) or 5 (unused)", quoted(name), v.Types[i])
		}
	}
	parts := append(f.divided(pre), filePart{&f.Model, object{"type": "BPE", "vocab": vocab, "merges": append([]string{}, v.Merges...), "ignore_merges": pre.whole}})
	roles := map[string]string{}
	for role, id := range v.Special {
		if id < 0 || int(id) >= len(v.Tokens) {
			return nil, fmt.Errorf("the token of the role %s is %d, expected one from 0 to %d", quoted(role), id, len(v.Tokens)-1)
		}
		roles[role] = v.Tokens[id]
	}
	if bos, ok := roles["bos"]; v.AddBOS {
		if !ok || !slices.ContainsFunc(f.AddedTokens, func(a addedToken) bool { return a.Content == bos }) {
			return nil, fmt.Errorf("it adds a bos token, and has none of the type control")
		}
		token := object{"SpecialToken": object{"id": bos, "type_id": 0}}
		text := func(id string, kind int) object { return object{"Sequence": object{"id": id, "type_id": kind}} }
		parts = append(parts, filePart{&f.PostProcessor, object{"type": "TemplateProcessing", "single": []object{token, text("A", 0)}, "pair": []object{token, text("A", 0), token, text("B", 1)},
			"special_tokens": object{bos: object{"id": bos, "ids": []int32{v.Special["bos"]}, "tokens": []string{bos}}}}})
	}
	t, err := f.written(parts)
	if err != nil {
		return nil, err
	}
	t.settings = settings{roles: roles, template: v.Template}
	return t, nil
}

type object map[string]any

func (f *file) divided(pre preTokenizer) []filePart {
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": pre.pattern == ""}
	steps := []object{level}
	if pre.digits {
		steps = []object{{"type": "Digits", "individual_digits": true}, level}
	}
	if pre.pattern != "" {
		steps = []object{{"type": "Split", "pattern": object{"Regex": pre.pattern}, "behavior": "Isolated", "invert": false}, level}
	}
	parts := []filePart{{&f.PreTokenizer, object{"type": "Sequence", "pretokenizers": steps}}, {&f.Decoder, level}}
	if pre.nfc {
		parts = append(parts, filePart{&f.Normalizer, object{"type": "NFC"}})
	}
	return parts
}

// Vocabulary returns the tokenizer for a GGUF file of a model of size tokens: ids without a token are unused.
//
// A tokenizer whose ids would differ is an error: not BPE of bytes by one of the pre-tokenizers, or with other added
// tokens around a text than a first one.
func (t *Tokenizer) Vocabulary(size int) (Vocabulary, error) {
	v, err := t.toVocabulary(size)
	if err != nil {
		return Vocabulary{}, fmt.Errorf("text: the vocabulary for a GGUF: %w", err)
	}
	return v, nil
}

func (t *Tokenizer) toVocabulary(size int) (v Vocabulary, err error) {
	var f file
	if t.file == nil {
		return v, fmt.Errorf("the tokenizer does not come from a tokenizer.json: others are not implemented")
	}
	if err := strictly(t.file, &f); err != nil {
		return v, err
	}
	if t.Size() > size {
		return v, fmt.Errorf("the tokenizer has %d tokens, expected at most the model's %d", t.Size(), size)
	}
	v = Vocabulary{Model: "gpt2", Special: map[string]int32{}, Template: t.settings.template}
	for _, name := range distinct {
		var with file
		if err := with.write(with.divided(preTokenizers[name])); err != nil {
			return v, err
		}
		if v.Pre == "" && sameParts(f.Normalizer, with.Normalizer, false) && sameParts(f.PreTokenizer, with.PreTokenizer, false) && sameParts(f.Decoder, with.Decoder, true) {
			v.Pre = name
		}
	}
	if v.Pre == "" {
		return v, fmt.Errorf("its normalizer, pre_tokenizer and decoder are those of none of the pre-tokenizers %s: others are not implemented", strings.Join(distinct, ", "))
	}
	for id := range int32(size) {
		name, kind := fmt.Sprintf("[PAD%d]", id), int32(unusedToken) // as llama.cpp
		if of, there := t.name(id); there {
			name, kind = of, normalToken
		}
		if a := t.addedNames[id]; a != nil && a.Special {
			kind = controlToken
		} else if a != nil {
			kind = userDefinedToken
		}
		v.Tokens, v.Types = append(v.Tokens, name), append(v.Types, kind)
	}
	var model bpeModel
	if err := strictly(f.Model, &model); err != nil {
		return v, err
	}
	for _, m := range model.Merges {
		v.Merges = append(v.Merges, m[0]+" "+m[1])
	}
	for role := range t.settings.roles {
		if id, there := t.Special(role); there {
			v.Special[role] = id
		}
	}
	if v.AddBOS = len(t.single) > 0 && t.single[0].text < 0; v.AddBOS {
		if _, there := v.Special["bos"]; !there {
			v.Special["bos"] = t.single[0].ids[0]
		}
	}
	read, err := v.tokenizer()
	if err != nil {
		return v, err
	}
	return v, t.same(read)
}

// same refuses ids that the GGUF's vocabulary changes.
func (t *Tokenizer) same(read *Tokenizer) error {
	for _, a := range t.added.all {
		if a.SingleWord || a.LStrip || a.RStrip || a.matched != a.Content {
			return fmt.Errorf("the added token %s is single_word, lstrip, rstrip or normalized to another text, which a GGUF file cannot have", quoted(a.Content))
		}
	}
	ids := func(parts []piecePart) (all []int32) {
		for _, p := range parts {
			if p.text >= 0 {
				all = append(all, int32(-1-p.text))
			}
			all = append(all, p.ids...)
		}
		return all
	}
	if !slices.Equal(ids(t.single), ids(read.single)) { // files do not say how pairs begin
		return fmt.Errorf("its post_processor adds tokens, expected none, or one at the beginning of each text: others are not implemented")
	}
	x, ok := t.model.(*bpe)
	y, _ := read.model.(*bpe)
	if !ok || x.prefix != y.prefix || x.suffix != y.suffix || !reflect.DeepEqual(x.starts, y.starts) || x.starts == nil && (x.unknown != y.unknown || x.unknownError != "") ||
		(x.bytes == nil) != (y.bytes == nil) || (x.whole == nil) != (y.whole == nil) || !maps.Equal(x.ranks, y.ranks) {
		return fmt.Errorf("its model is not BPE of bytes with the pre-tokenizer's ignore_merges, and without a prefix, a suffix, an unknown token and byte_fallback: others are not implemented")
	}
	return nil
}

// sameParts ignores fields that change no ids.
func sameParts(a, b json.RawMessage, decoders bool) bool {
	var flat func(part json.RawMessage, all []object) []object
	flat = func(part json.RawMessage, all []object) []object {
		var of struct {
			Type                                 string
			Normalizers, PreTokenizers, Decoders []json.RawMessage
		}
		fields := object{"use_regex": true}
		switch {
		case absent(part) || json.Unmarshal(part, &of) != nil || json.Unmarshal(part, &fields) != nil:
			return all
		case of.Type == "Sequence":
			for _, p := range slices.Concat(of.Normalizers, of.PreTokenizers, of.Decoders) {
				all = flat(p, all)
			}
			return all
		case decoders:
			return append(all, object{"type": of.Type})
		}
		delete(fields, "trim_offsets")
		return append(all, fields)
	}
	return reflect.DeepEqual(flat(a, nil), flat(b, nil))
}
