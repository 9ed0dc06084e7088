package vfs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The early write changes nothing that a reader sees, and leaves a broken file to Sync.
func TestWriteBack(t *testing.T) {
	dir := t.TempDir()
	fs, err := OS(dir)
	require.NoError(t, err)
	defer fs.(io.Closer).Close()
	f, err := fs.Create("large")
	require.NoError(t, err)
	part := bytes.Repeat([]byte("lazo"), writeBackSize/8)
	for range 5 {
		_, err = f.Write(part)
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, f.(*osFile).begun, int64(writeBackSize), "it began early")
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	text, err := os.ReadFile(filepath.Join(dir, "large"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(bytes.Repeat(part, 5), text))
	writeBack(f.(*osFile).File, 0, 1)
	require.ErrorIs(t, f.Sync(), os.ErrClosed)
}
