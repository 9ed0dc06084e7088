package text

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Vocabulary is a tokenizer as the metadata of a GGUF file have it.
type Vocabulary struct {
	// Model is tokenizer.ggml.model: "gpt2", BPE of bytes. Others are errors.
	Model string
	// Pre is tokenizer.ggml.pre, which names how texts are divided: "gpt-2", "smollm", "llama-bpe", "qwen2" and others.
	Pre string
	// Tokens, Types and Merges are those of tokenizer.ggml: tokens, token_type and merges.
	Tokens []string
	Types  []int32
	Merges []string
	// Special has tokenizer.ggml's token ids by role, such as "bos", "eos", "pad" and "unk".
	Special map[string]int32
	// AddBOS is add_bos_token: Encode begins with it.
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

const (
	normalToken      = 1
	controlToken     = 3
	userDefinedToken = 4
)

// Tokenizer makes the tokenizer with the ids of the model's tokenizer.json.
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
		vocab[name] = int32(i)
		switch v.Types[i] {
		case normalToken:
		case controlToken, userDefinedToken:
			f.AddedTokens = append(f.AddedTokens, addedToken{ID: int32(i), Content: name, Special: v.Types[i] == controlToken})
		default:
			return nil, fmt.Errorf("the token %s has the type %d, expected 1 (normal), 3 (control) or 4 (user-defined)", quoted(name), v.Types[i])
		}
	}
	type object map[string]any
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": pre.pattern == ""}
	steps := []object{level}
	if pre.digits {
		steps = []object{{"type": "Digits", "individual_digits": true}, level}
	}
	if pre.pattern != "" {
		steps = []object{{"type": "Split", "pattern": object{"Regex": pre.pattern}, "behavior": "Isolated", "invert": false}, level}
	}
	parts := []filePart{{&f.PreTokenizer, object{"type": "Sequence", "pretokenizers": steps}}, {&f.Decoder, level},
		{&f.Model, object{"type": "BPE", "vocab": vocab, "merges": append([]string{}, v.Merges...), "ignore_merges": pre.whole}}}
	if pre.nfc {
		parts = append(parts, filePart{&f.Normalizer, object{"type": "NFC"}})
	}
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
