package flaxlike_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla"
)

// Later changes of the caller's list of layers change no model.
func TestNew_copiesTheLayers(t *testing.T) {
	inner := []nn.Layer{nn.Dense{Units: 3}}
	network := nn.Sequential{nn.L1{Rate: 0.1, Layers: inner}, nn.Dense{Units: 2}}
	m := newModel(t, network)
	inner[0], network[1] = nn.Dense{Units: 5}, nn.Dense{Units: 7}
	require.NoError(t, m.Init(t.Context(), first(t, line(t, 4), 4)))
	require.Equal(t, int64(1*3+3+3*2+2), m.Summary().Total(managed.Parameter).Size)
}

// R36: New downloads nothing unless it is asked to: without a plugin it says how.
func TestR36_newDownloadsNothingUnasked(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CACHE_HOME", "PJRT_PLUGIN_LIBRARY_PATH"} {
		t.Setenv(name, home)
	}
	_, err := flaxlike.New(t.Context(), nn.Dense{Units: 1})
	require.ErrorIs(t, err, xla.ErrPluginNotFound)
	require.ErrorContains(t, err, "flaxlike: new model: no PJRT plugin found")
	require.ErrorContains(t, err, "or give New flaxlike.InstallIfMissing(progress), which downloads it")
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, left)
}
