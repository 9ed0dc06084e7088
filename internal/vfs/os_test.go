package vfs_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// A file that is handed to the disk while it is being written has the bytes of any other, also if it is closed half
// made.
func TestLargeFileOfTheDisk(t *testing.T) {
	fs, err := vfs.OS(t.TempDir())
	require.NoError(t, err)
	defer fs.Close()
	var want []byte
	piece := make([]byte, 700_001)
	f, err := fs.Create("large")
	require.NoError(t, err)
	for i := range 40 {
		for j := range piece {
			piece[j] = byte(i + j>>9)
		}
		n, err := f.Write(piece)
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
		want = append(want, piece...)
	}
	require.NoError(t, errors.Join(f.Sync(), f.Close()))
	f, err = fs.Open("large")
	require.NoError(t, err)
	got := make([]byte, len(want))
	_, err = f.ReadAt(got, 0)
	require.NoError(t, errors.Join(err, f.Close()))
	require.True(t, bytes.Equal(want, got))

	f, err = fs.Create("half")
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 9<<20))
	require.NoError(t, errors.Join(err, f.Close(), fs.Remove("half")))
}

// Locked does not keep another from the lock.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "LOCK")
	fsys, err := vfs.OS(dir)
	require.NoError(t, err)
	defer fsys.Close()
	for range 2 {
		locked, err := vfs.Locked(path)
		require.NoError(t, err)
		require.False(t, locked)
		held, err := fsys.Lock("LOCK", "me")
		require.NoError(t, err)
		locked, err = vfs.Locked(path)
		require.NoError(t, err)
		require.True(t, locked)
		require.NoError(t, held.Close())
	}
	var over atomic.Bool
	looks := make(chan error, 1)
	go func() {
		var failed error
		for !over.Load() {
			if _, err := vfs.Locked(path); err != nil {
				failed = err
			}
		}
		looks <- failed
	}()
	for range 300 {
		held, err := fsys.Lock("LOCK", "me")
		require.NoError(t, err)
		require.NoError(t, held.Close())
	}
	over.Store(true)
	require.NoError(t, <-looks)
}
