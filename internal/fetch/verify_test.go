package fetch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Digest reads no more of a file than its limit, also of one whose size is not known, as in /proc.
func TestDigest_limit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	size, digest, err := Digest(path, 7)
	require.NoError(t, err)
	require.Equal(t, []any{int64(7), sum("content")}, []any{size, digest})
	for _, path := range []string{path, "/proc/self/stat"} {
		_, _, err = Digest(path, 6)
		require.ErrorIs(t, err, ErrSize)
		require.ErrorContains(t, err, " 7 bytes, expected at most 6")
	}
}

func TestVerifyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "link")))
	tests := []struct {
		name, path, digest string
		size               int64
		want               error
	}{
		{"right", path, sum("content"), 7, nil},
		{"size unknown", path, sum("content"), 0, nil},
		{"wrong size", path, sum("content"), 8, ErrSize},
		{"wrong digest", path, sum("Content"), 7, ErrDigest},
		{"missing", path + "x", sum("content"), 7, os.ErrNotExist},
		{"folder", dir, sum(""), 0, ErrDigest},
		{"link", filepath.Join(dir, "link"), sum("content"), 7, ErrDigest},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.ErrorIs(t, VerifyFile(test.path, test.size, test.digest), test.want)
		})
	}
}
