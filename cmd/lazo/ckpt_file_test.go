package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// Flax's names of what GoMLX's layers keep.
func TestCkptExportForFlax(t *testing.T) {
	dir := t.TempDir()
	f, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	type origin struct {
		Trainable bool `json:"trainable"`
	}
	var tensors []checkpoint.Tensor
	origins := map[string]origin{}
	want := map[string]string{
		"/dense/weights": "params/dense/kernel", "/dense/biases": "params/dense/bias", "/a/b/embeddings": "params/a/b/embedding",
		"/layer_normalization/gain": "params/layer_normalization/scale", "/layer_normalization/offset": "params/layer_normalization/bias",
		"/batch_normalization/scale": "params/batch_normalization/scale", "/batch_normalization/offset": "params/batch_normalization/bias",
		"/batch_normalization/mean": "batch_stats/batch_normalization/mean", "/batch_normalization/variance": "batch_stats/batch_normalization/var",
		"/batch_normalization/avg_weight": "", "/temperature": "params/temperature", "/mean": "params/mean", "/global_step": "", "/optimizer/mean": "",
	}
	for name := range want {
		tensors = append(tensors, checkpoint.Tensor{Name: name, DType: safetensors.U8, Dims: []int{len(name)}, Data: []byte(name)})
		fixed := strings.Contains(name, "global") || strings.Contains(name, "optimizer") || strings.Contains(name, "avg") || strings.HasSuffix(name, "variance") || name == "/batch_normalization/mean"
		origins[name] = origin{!fixed}
	}
	require.NoError(t, f.Save(t.Context(), 1, checkpoint.Content{Tensors: tensors, Sections: map[string]any{"variables": origins}}))
	require.NoError(t, f.Close())
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	require.Equal(t, result{0, "step 1: 11 tensors in " + path + "\n", ""}, run(t, "ckpt", "export", dir, path, "--flax"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := safetensors.NewReader(bytes.NewReader(text), int64(len(text)), safetensors.Limits{})
	require.NoError(t, err)
	for name, flax := range want {
		if flax != "" {
			data, _, err := r.Read(flax)
			require.NoError(t, err)
			require.Equal(t, name, string(data))
		}
	}
}

func TestCkptImportFromGoMLX(t *testing.T) {
	kept, dir := filepath.Join("..", "..", "checkpoint", "testdata", "gomlx-v0.26.0", "gzip"), t.TempDir()
	require.Equal(t, result{0, "step 1200: 16 tensors in " + dir + "\n", ""}, run(t, "ckpt", "import", "--from", "gomlx", kept, dir))
	require.Contains(t, run(t, "ckpt", "show", dir).stdout, `"/dense/weights"  F32[2 3]`)
	require.Equal(t, result{0, "step 5: 16 tensors in " + dir + "\n", ""}, run(t, "ckpt", "import", "--from", "gomlx", kept, dir, "--step", "5"))
	require.Contains(t, run(t, "ckpt", "import", "--from", "gomlx", "--max-bytes", "100", kept, dir).stderr, "if you trust it, give 2538 bytes for maxBytes")
	require.Equal(t, 2, run(t, "ckpt", "import", "--from", "torch", kept, dir).code)
	require.Contains(t, run(t, "ckpt", "import", "--from", "gomlx", t.TempDir(), dir).stderr, "no checkpoint in the folder")
}
