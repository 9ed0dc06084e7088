package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tokenizer of bytes is written as a GGUF's vocabulary, of which the same tokenizer is read: ids, roles and template.
// Ids without a token are unused.
func TestTokenizer_Vocabulary(t *testing.T) {
	files := kindsOf(t)
	var texts peerTexts
	unpacked(t, "testdata/texts.json.gz", &texts)
	for name, pre := range map[string]string{"gpt2": "gpt-2", "smollm": "smollm", "llama3": "llama-bpe", "qwen2": "qwen2"} {
		want, err := parse(files.Files[name])
		require.NoError(t, err)
		eos, _ := want.Token(0)
		want.settings = settings{roles: map[string]string{"eos": eos}, template: "t"}
		size := want.Size() + 2
		v, err := want.Vocabulary(size)
		require.NoError(t, err, name)
		require.Equal(t, pre, v.Pre)
		require.Equal(t, "gpt2", v.Model)
		require.Equal(t, name == "llama3", v.AddBOS)
		require.Len(t, v.Tokens, size)
		require.Equal(t, []int32{5, 5}, v.Types[size-2:])
		require.Equal(t, fmt.Sprintf("[PAD%d]", size-1), v.Tokens[size-1])
		got, err := v.Tokenizer()
		require.NoError(t, err)
		require.Equal(t, want.Size(), got.Size())
		id, known := got.Special("eos")
		require.True(t, known)
		require.Zero(t, id)
		require.Equal(t, "t", got.ChatTemplate())
		for _, s := range append(texts.Texts[:500], "[PAD700] 12345 <|eot_id|> "+eos) {
			a, err := want.Encode(s)
			require.NoError(t, err)
			b, err := got.Encode(s)
			require.NoError(t, err)
			require.Equal(t, a, b, "%s: %q", name, s)
			left, err := want.DecodeOrdinary(a)
			require.NoError(t, err)
			right, err := got.DecodeOrdinary(a)
			require.NoError(t, err)
			require.Equal(t, left, right, "%s: %q", name, s)
		}
		again, err := got.Vocabulary(size)
		require.NoError(t, err)
		require.Equal(t, v, again)
		_, err = want.Vocabulary(size - 3)
		require.ErrorContains(t, err, fmt.Sprintf("the tokenizer has %d tokens, expected at most the model's %d", size-2, size-3))
	}
}

// A tokenizer whose ids a GGUF's vocabulary would change is an error by the part that differs.
func TestTokenizer_Vocabulary_others(t *testing.T) {
	files := kindsOf(t)
	for name, text := range files.Files {
		if strings.Contains("gpt2 smollm llama3 qwen2", name) {
			continue
		}
		tokens, err := parse(text)
		require.NoError(t, err)
		_, err = tokens.Vocabulary(tokens.Size())
		require.ErrorContains(t, err, "text: the vocabulary for a GGUF: its normalizer, pre_tokenizer and decoder are those of none of the pre-tokenizers gpt-2, smollm", name)
	}
	model := &Tokenizer{}
	_, err := model.Vocabulary(10)
	require.ErrorContains(t, err, "does not come from a tokenizer.json")
	change := func(name string, edit func(all map[string]any)) error {
		var all map[string]any
		require.NoError(t, json.Unmarshal(files.Files[name], &all))
		edit(all)
		text, err := json.Marshal(all)
		require.NoError(t, err)
		tokens, err := parse(text)
		require.NoError(t, err)
		_, err = tokens.Vocabulary(tokens.Size())
		return err
	}
	of := func(all map[string]any, name string) map[string]any { return all[name].(map[string]any) }
	require.NoError(t, change("gpt2", func(map[string]any) {}))
	for want, edit := range map[string]func(all map[string]any){
		`"<|endoftext|>" is single_word, lstrip`:           func(all map[string]any) { all["added_tokens"].([]any)[0].(map[string]any)["lstrip"] = true },
		"its post_processor adds tokens":                   func(all map[string]any) { all["post_processor"] = around0 },
		"not BPE of bytes with the pre-tokenizer's ignore": func(all map[string]any) { of(all, "model")["ignore_merges"] = true },
		"pre_tokenizer and decoder are those of none":      func(all map[string]any) { of(all, "pre_tokenizer")["add_prefix_space"] = true },
		"its normalizer, pre_tokenizer and decoder are":    func(all map[string]any) { all["normalizer"] = map[string]any{"type": "Lowercase"} },
		"decoder are those of none":                        func(all map[string]any) { all["decoder"] = nil },
	} {
		require.ErrorContains(t, change("gpt2", edit), want)
	}
	require.ErrorContains(t, change("llama3", func(all map[string]any) { of(all, "model")["ignore_merges"] = false }), "ignore_merges")
	require.False(t, bytes.Contains(files.Files["gpt2"], []byte("[PAD")))
}

var around0 = map[string]any{"type": "RobertaProcessing", "sep": []any{"<|endoftext|>", 0}, "cls": []any{"<|endoftext|>", 0}, "trim_offsets": true, "add_prefix_space": true}
