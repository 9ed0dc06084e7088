package records

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
	opened, err := os.Stat(path)
	require.NoError(t, err)
	require.False(t, Rotated(path, opened, 5))
	require.True(t, Rotated(path, opened, 6), "it was cut")
	require.NoError(t, os.Rename(path, path+".1"))
	require.True(t, Rotated(path, opened, 5), "it was moved")
	require.NoError(t, os.WriteFile(path, []byte("12345678"), 0o600))
	require.True(t, Rotated(path, opened, 5), "it is another file")
	require.False(t, Rotated(filepath.Join(path, "below"), opened, 5), "another error than a missing file")
}
