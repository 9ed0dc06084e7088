//go:build unix

package owners

import (
	users "os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// S54: without $HOME, as in a service of systemd, the home folder is that of the user database. Before, this was an
// error.
func TestS54_homeOfTheUserDatabase(t *testing.T) {
	known, err := users.Current()
	require.NoError(t, err)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	dir, err := Home()
	require.NoError(t, err)
	require.Equal(t, known.HomeDir, dir)
	dir, err = Cache()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(dir, known.HomeDir+string(filepath.Separator)), dir)
}

func TestR51_homeIsAbsolute(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "not/absolute")
	_, err := Home()
	require.EqualError(t, err, `"not/absolute" of $HOME is not an absolute path`)
	_, err = Cache()
	require.ErrorContains(t, err, "is not an absolute path")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "cache")
	_, err = Cache()
	require.Error(t, err)
	t.Setenv("XDG_CACHE_HOME", "/cache")
	dir, err := Cache()
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(dir))
}
