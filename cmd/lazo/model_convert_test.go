package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

func copied(to, from string) error { return os.CopyFS(to, os.DirFS(from)) }

// A folder or a file .gguf becomes a folder of another dtype, with its tokenizer.
func TestModelConvert(t *testing.T) {
	for from, class := range map[string]string{folderOf(t, "bert"): "BertForSequenceClassification", folders + "gguf/qwen3.gguf": "Qwen3ForCausalLM"} {
		to := filepath.Join(t.TempDir(), "to")
		r := run(t, "model", "convert", from, to, "--dtype", "bfloat16")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, to+"\n", r.stdout)
		is := must.M1(pretrained.Open(t.Context(), to)).Describe()
		require.Equal(t, []string{class}, is.Heads)
		require.Equal(t, []string{"BF16"}, is.DTypes)
		if class != "Qwen3ForCausalLM" {
			require.Equal(t, "WordLevel with a chat template", is.Tokenizer)
			continue
		}
		require.Empty(t, is.Tokenizer)
		require.Empty(t, r.stderr)
	}
	whole := must.M1(os.ReadFile(folders + "gguf/qwen3.gguf"))
	whole[16]++ // values, of which the next one has a multiple of the alignment
	value := "\x14\x00\x00\x00\x00\x00\x00\x00tokenizer.ggml.model\x08\x00\x00\x00\x18\x00\x00\x00\x00\x00\x00\x00another kind of tokenizer"[:64]
	unread := inFolder(t, t.TempDir(), "qwen3.gguf", string(whole[:24])+value+string(whole[24:]))
	out := run(t, "model", "convert", unread, filepath.Join(t.TempDir(), "to"), "--dtype", "float32")
	require.Zero(t, out.code, out.stderr)
	require.Regexp(t, `^left out .*the tokenizer of .*qwen3.gguf`, out.stderr)
	dir := folderOf(t, "bert")
	r := run(t, "model", "convert", dir, dir+"/../bert", "--dtype", "float16")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "is the folder to read and to write")
	r = run(t, "model", "convert", folderOf(t, "bert", "BertForSequenceClassification", "BertForMultipleChoice"), filepath.Join(dir, "x"), "--dtype", "float16")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `architectures in config.json is ["BertForMultipleChoice"], expected a class such as "BertModel"`)
	require.Equal(t, 2, run(t, "model", "convert", dir, filepath.Join(dir, "x")).code)
}

// A folder or a file .gguf becomes a file .gguf of another dtype; what such a file cannot have is an error.
func TestModelConvert_gguf(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to.gguf")
	for dtype, kind := range map[string]string{"bfloat16": "BF16", "float16": "F16", "float32": "F32"} {
		r := run(t, "model", "convert", folders+"gguf/qwen3.gguf", to, "--dtype", dtype)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, to+"\n", r.stdout)
		is := must.M1(pretrained.Open(t.Context(), to)).Describe()
		require.Equal(t, []string{"Qwen3ForCausalLM"}, is.Heads)
		require.Equal(t, kind, is.DTypes[0])
	}
	for want, args := range map[string][]string{
		"rows of 16 numbers, expected a multiple of 32 for Q8_0":                 {folders + "gguf/qwen3.gguf", to, "--dtype", "q8_0"},
		"--dtype q8_0 is for files .gguf":                                        {folders + "gguf/qwen3.gguf", to + "x", "--dtype", "q8_0"},
		"the network is BertForSequenceClassification, expected CausalLM of one": {folderOf(t, "bert"), to, "--dtype", "float16"},
	} {
		r := run(t, append([]string{"model", "convert"}, args...)...)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, want)
	}
}
