package vfs_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

func TestCount(t *testing.T) {
	c := vfs.Count(&vfs.Mem{})
	f, err := c.Create("a")
	require.NoError(t, err)
	l, err := c.Lock("l", "")
	require.NoError(t, err)
	_, err = c.Open("none")
	require.Error(t, err)
	require.EqualValues(t, 2, c.Handles())
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
	require.EqualValues(t, 1, c.Handles(), "closed twice, counted once")
	require.NoError(t, l.Close())
	require.Zero(t, c.Handles())
}
