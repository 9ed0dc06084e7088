package vfs_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

func open(t *testing.T) vfs.FS {
	t.Helper()
	fsys, err := vfs.OS(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	return fsys
}

func TestLockEndsWithClose(t *testing.T) {
	for _, c := range []struct {
		name string
		fsys vfs.FS
	}{{"os", open(t)}, {"mem", &vfs.Mem{}}} {
		t.Run(c.name, func(t *testing.T) {
			first, err := c.fsys.Lock("LOCK", "a long note of the first")
			require.NoError(t, err)
			_, err = c.fsys.Lock("LOCK", "second")
			var locked *vfs.LockedError
			require.ErrorAs(t, err, &locked)
			require.Equal(t, "a long note of the first", locked.Note)
			require.NoError(t, first.Close())
			require.ErrorIs(t, first.Close(), fs.ErrClosed)
			third, err := c.fsys.Lock("LOCK", "third")
			require.NoError(t, err)
			note, err := read(c.fsys, "LOCK")
			require.NoError(t, err)
			require.Equal(t, "third", note)
			require.NoError(t, third.Close())
		})
	}
}
