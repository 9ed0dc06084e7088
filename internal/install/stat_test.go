package install

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The state of a file differs after each change that leaves its name.
func TestStateOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	seen := map[string]string{stateOf(path): "missing"}
	for name, change := range map[string]func() error{
		"longer": func() error { return os.WriteFile(path, []byte("aa"), 0o600) },
		"older":  func() error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
	} {
		require.NoError(t, os.WriteFile(path, []byte("a"), 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1000, 0)))
		before := stateOf(path)
		require.Equal(t, before, stateOf(path))
		require.NoError(t, change())
		require.NotEqual(t, before, stateOf(path), name)
		require.Empty(t, seen[before])
	}
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, inode(info), inode(info))
}
