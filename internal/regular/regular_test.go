//lazo:norace
package regular_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/regular"
)

// Anything but a regular file is an error at once, without a wait for a pipe's other end.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := regular.Open(pipe, os.O_RDONLY, 0)
	require.EqualError(t, err, "open "+pipe+": is not a regular file (p---------)")
	_, err = regular.Open(filepath.Dir(pipe), os.O_RDONLY, 0)
	require.ErrorContains(t, err, ": a folder, expected a file)")
	require.ErrorIs(t, regular.Write(pipe, []byte("text"), 0o600), regular.Err)
	file := pipe + ".txt"
	require.NoError(t, regular.Write(file, []byte("longer"), 0o600))
	require.NoError(t, regular.Write(file, []byte("text"), 0o600))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}
