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
		require.Regexp(t, `^left out .*the tokenizer of .*qwen3.gguf`, r.stderr)
	}
	dir := folderOf(t, "bert")
	r := run(t, "model", "convert", dir, dir+"/../bert", "--dtype", "float16")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "is the folder to read and to write")
	r = run(t, "model", "convert", folderOf(t, "bert", "BertForSequenceClassification", "BertForMultipleChoice"), filepath.Join(dir, "x"), "--dtype", "float16")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `architectures in config.json is ["BertForMultipleChoice"], expected a class such as "BertModel"`)
	require.Equal(t, 2, run(t, "model", "convert", dir, filepath.Join(dir, "x")).code)
}
