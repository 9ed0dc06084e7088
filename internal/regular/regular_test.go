//lazo:norace
package regular_test

import (
	"io"
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

// S45: Read reads up to its limit, also of a file whose size is not known, as in /proc.
func TestS45_read(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	text, err := regular.Read(file, 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	_, err = regular.Read(file, 3)
	require.EqualError(t, err, file+" has 4 bytes, expected at most 3")
	_, err = regular.Read("/proc/self/stat", 3)
	require.ErrorContains(t, err, "expected at most 3")
	require.NoError(t, os.Truncate(file, 1<<40))
	_, err = regular.Read(file, 1<<20)
	require.ErrorContains(t, err, "has 1099511627776 bytes, expected at most 1048576")
}

// S56: of a file that grows beyond its limit after its size was read, ReadAll reads one byte more than the limit. A
// pipe is such a file: its size is 0.
func TestReadAll_ofAFileThatGrows(t *testing.T) {
	file, writer, err := os.Pipe()
	require.NoError(t, err)
	defer file.Close()
	_, err = writer.Write(make([]byte, 5000))
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	_, err = regular.ReadAll(file, 1000)
	require.ErrorContains(t, err, "expected at most 1000")
	rest, err := io.ReadAll(file)
	require.NoError(t, err)
	require.Len(t, rest, 5000-1001)
}
