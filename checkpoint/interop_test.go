package checkpoint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// TestInteropCheckpoint has the Python package read a checkpoint whose tensors, of every type, are those of a file that
// it wrote.
func TestInteropCheckpoint(t *testing.T) {
	interpreter := os.Getenv("LAZO_PYTHON")
	if interpreter == "" {
		t.Skip("NOT TESTED against the Python package: make interop does that")
	}
	file, err := os.Open("safetensors/testdata/numpy.safetensors")
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	r, err := safetensors.NewReader(file, info.Size(), safetensors.Limits{})
	require.NoError(t, err)
	var c checkpoint.Content
	for h := range r.Tensors() {
		data, _, err := r.Read(h.Name)
		require.NoError(t, err)
		c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: h.Name, DType: h.DType, Dims: h.Dims, Data: data})
	}
	root := t.TempDir()
	f, err := checkpoint.Open(root, checkpoint.Options{Log: quiet})
	require.NoError(t, err)
	require.NoError(t, f.Save(t.Context(), 3, c))
	require.NoError(t, f.Close())
	out, err := exec.CommandContext(t.Context(), interpreter, "safetensors/testdata/safetensors_check.py", "checkpoint", filepath.Join(root, dir(3))).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "22 tensors equal, 17 of them as arrays\n", string(out))
	t.Logf("a checkpoint, in Python: %s", out)
}
