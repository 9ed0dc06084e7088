package pretrained_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/pretrained"
)

// Tensors of another shape or dtype, and files that are cut or change after Open, are errors.
func TestOpen_tensors(t *testing.T) {
	const words = "bert.embeddings.word_embeddings.weight"
	for want, change := range map[string]func(all map[string]array){
		`the folder has no tensor "` + words + `"`:                func(all map[string]array) { delete(all, words) },
		`"` + words + `" has the shape [16 60], expected [60 16]`: func(all map[string]array) { a := all[words]; a.Dims = []int{16, 60}; all[words] = a },
		`"` + words + `" is of I32, expected F32, F16 or BF16`:    func(all map[string]array) { a := all[words]; a.DType = safetensors.I32; all[words] = a },
	} {
		dir := folderWith(t, nil)
		all, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
		change(all)
		writeFile(t, filepath.Join(dir, "model.safetensors"), all)
		_, err := pretrained.Open(t.Context(), dir)
		require.ErrorContains(t, err, want)
	}
	dir := folderWith(t, nil)
	text, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	write(t, dir, "model.safetensors", string(text[:len(text)-1]))
	_, err = pretrained.Open(t.Context(), dir)
	require.ErrorContains(t, err, "model.safetensors: ")
	require.NoError(t, os.Remove(filepath.Join(dir, "model.safetensors")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "model.safetensors"), 0o755))
	_, err = pretrained.Open(t.Context(), dir)
	require.ErrorContains(t, err, "is not a regular file")
	require.False(t, strings.Contains(err.Error(), "\n"))
}
