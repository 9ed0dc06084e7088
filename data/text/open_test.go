package text

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func kindsOf(t testing.TB) (files peerFiles) {
	t.Helper()
	unpacked(t, "testdata/kinds.json.gz", &files)
	return files
}

// A folder gives the tokenizer, the ids of its roles, and the template; tokenizer.json counts before tokenizer.model.
func TestOpen_folders(t *testing.T) {
	files := kindsOf(t)
	model, err := hex.DecodeString(files.Models["spm-bpe"])
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	_, err = Open(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "text: "+dir+" has no tokenizer.json and no tokenizer.model: file does not exist")
	write("tokenizer.model", string(model))
	tokens, err := Open(dir)
	require.NoError(t, err)
	_, err = json.Marshal(tokens)
	require.ErrorContains(t, err, "cannot be written as one")
	alone, err := Open(filepath.Join(dir, "tokenizer.model"))
	require.NoError(t, err)
	require.Equal(t, tokens.Size(), alone.Size())

	write("tokenizer.json", string(files.Files["bert"]))
	write("special_tokens_map.json", `{"pad_token": "[PAD]", "unk_token": "[MASK]", "cls_token": {"content": "[CLS]", "lstrip": false}}`)
	write("tokenizer_config.json", `{"unk_token": "[UNK]", "bos_token": null, "model_max_length": 512, "chat_template": [{"name": "default", "template": "a"}, {"name": "rag", "template": "b"}]}`)
	tokens, err = Open(dir)
	require.NoError(t, err)
	for role, want := range map[string]int32{"pad": 0, "unk": 1, "cls": 2} {
		id, ok := tokens.Special(role)
		require.True(t, ok, role)
		require.Equal(t, want, id, role)
	}
	_, ok := tokens.Special("bos")
	require.False(t, ok)
	require.Equal(t, 512, tokens.MaxLength())
	require.Equal(t, "a", tokens.ChatTemplate())
	write("chat_template.jinja", "c")
	write("tokenizer_config.json", `{"model_max_length": 1000000000000000019884624838656}`)
	tokens, err = Open(dir)
	require.NoError(t, err)
	require.Equal(t, "c", tokens.ChatTemplate())
	require.Zero(t, tokens.MaxLength())
	for content, message := range map[string]string{`[`: "unexpected EOF", `{"EOS_Token": "x"}`: `it has the name "EOS_Token", expected "eos_token" exactly`, `{"Chat_Template": "x"}`: `"Chat_Template"`,
		`{"eos_token": {"Content": "x"}}`: `it has the name "Content"`, `{"eos_token": {}}`: `it lacks "content"`, `{"eos_token": "a", "eos_token": "b"}`: `it has "eos_token" twice`,
		`{"chat_template": [{"Name": "default", "template": "a"}]}`: `has the name "Name"`} {
		write("tokenizer_config.json", content)
		_, err = Open(dir)
		require.ErrorContains(t, err, "tokenizer_config.json: ")
		require.ErrorContains(t, err, message)
	}
}

// S45: a pipe, a device and a file above the limit are errors at once: Open neither waits nor reads.
func TestS45_openRefusesEndlessFiles(t *testing.T) {
	for name, lay := range map[string]func(path string) error{
		"open FILE: is not a regular file (p---------)":  func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"open FILE: is not a regular file (Dc---------)": func(path string) error { return os.Symlink("/dev/zero", path) },
		"FILE has 1099511627776 bytes, expected at most 268435456": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Truncate(path, 1<<40))
		},
	} {
		for _, file := range []string{"tokenizer.json", "tokenizer.model"} {
			dir := t.TempDir()
			path := filepath.Join(dir, file)
			require.NoError(t, lay(path))
			_, err := Open(dir)
			require.EqualError(t, err, "text: "+strings.ReplaceAll(name, "FILE", path))
		}
	}
}

// A GGUF's vocabulary gives the ids of the tokenizer.json with the same tokens and merges.
func TestVocabulary(t *testing.T) {
	files := kindsOf(t)
	var texts peerTexts
	unpacked(t, "testdata/texts.json.gz", &texts)
	for name, pre := range map[string]string{"gpt2": "gpt-2", "smollm": "smollm", "llama3": "llama-bpe", "qwen2": "qwen2"} {
		want, err := parse(files.Files[name])
		require.NoError(t, err)
		var content struct {
			Model struct {
				Vocab  map[string]int
				Merges [][2]string
			}
		}
		require.NoError(t, json.Unmarshal(files.Files[name], &content))
		v := Vocabulary{Model: "gpt2", Pre: pre, Tokens: make([]string, len(content.Model.Vocab)), Types: make([]int32, len(content.Model.Vocab)), Template: "t"}
		for token, id := range content.Model.Vocab {
			v.Tokens[id], v.Types[id] = token, normalToken
		}
		for _, a := range want.added.all {
			v.Types[a.ID] = controlToken
		}
		for _, m := range content.Model.Merges {
			v.Merges = append(v.Merges, m[0]+" "+m[1])
		}
		if name == "llama3" {
			v.AddBOS, v.Special = true, map[string]int32{"bos": 0}
		}
		got, err := v.Tokenizer()
		require.NoError(t, err)
		for _, s := range texts.Texts[:500] {
			a, err := want.Encode(s)
			require.NoError(t, err)
			b, err := got.Encode(s)
			require.NoError(t, err)
			require.Equal(t, a, b, "%s: %q", name, s)
		}
		require.Equal(t, "t", got.ChatTemplate())
		v.Pre = "jina-v2-de"
		_, err = v.Tokenizer()
		require.ErrorContains(t, err, `text: the vocabulary of a GGUF: its model is "gpt2" and its pre-tokenizer "jina-v2-de", expected gpt2`)
	}
}
