package safetensors_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	_, _, _, err := safetensors.ReadFile(path, safetensors.Limits{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "safetensors: read "+path+": no such file or directory")

	require.NoError(t, os.WriteFile(path, make([]byte, 7), 0o600))
	_, _, _, err = safetensors.ReadFile(path, safetensors.Limits{})
	var format *safetensors.FormatError
	require.ErrorAs(t, err, &format)
	require.ErrorContains(t, err, "safetensors: read "+path+": read header: byte 7: the length of the header takes 8 bytes")

	file := sample(t)
	require.NoError(t, os.WriteFile(path, file, 0o600))
	tensors, elements, _, err := safetensors.ReadFile(path, safetensors.Limits{})
	require.NoError(t, err)
	require.Len(t, elements, len(tensors))
}
