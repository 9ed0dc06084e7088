package xla_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func TestSearchPathPlugin(t *testing.T) {
	path := plugintest.Uncached(t).Plugin().Path
	emptyHome(t)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "pjrt_c_api_mine_plugin.so")))
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", dir)
	runtime, err := xla.Open(t.Context(), "mine")
	require.NoError(t, err)
	defer runtime.Close()
	assert.Equal(t, "$PJRT_PLUGIN_LIBRARY_PATH", runtime.Plugin().Source)
	assert.Equal(t, xla.CPU, runtime.Plugin().Kind, "what it is, not what it is called")
	assert.Equal(t, []float32{6}, double(t, runtime, 0, []float32{3}))
}

func TestF22_PluginMissing(t *testing.T) {
	calls := offline(t)
	home := emptyHome(t)
	one, two, root := t.TempDir(), t.TempDir(), t.TempDir()
	const install = "go run github.com/lazo-ml/lazo/cmd/lazo install "
	rows := []struct {
		name, plugin, search string
		opts                 []xla.Option
		want                 []string // in the message
	}{
		{"cpu", xla.CPU, "", nil, []string{"$PJRT_PLUGIN_LIBRARY_PATH", "not set", home, install + "cpu", `plugin "go"`}},
		{"cuda", xla.CUDA, "", nil, []string{home, install + "cuda"}},
		{"tpu", xla.TPU, "", nil, []string{home, install + "tpu"}},
		{"folders", xla.CPU, one + ":" + two, []xla.Option{xla.Root(root)}, []string{one, two, root, install + "cpu"}},
		{"folder that is not there", xla.CPU, one + "/none", nil, []string{one + "/none", home}},
		{"other platform", "rocm", one, nil, []string{one, "rocm"}},
		{"path", filepath.Join(one, "plugin.so"), "", nil, []string{filepath.Join(one, "plugin.so")}},
		{"relative path", "./none/plugin.so", "", nil, []string{"none/plugin.so"}},
	}
	longest := time.Duration(0)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", row.search)
			begin := time.Now()
			_, err := xla.Open(t.Context(), row.plugin, row.opts...)
			took := time.Since(begin)
			assert.Less(t, took, time.Second, "it takes less than a millisecond")
			longest = max(longest, took)
			require.ErrorIs(t, err, xla.ErrPluginNotFound)
			assert.Contains(t, err.Error(), "\n  tried ")
			for _, text := range row.want {
				assert.Contains(t, err.Error(), text)
			}
		})
	}
	assert.Zero(t, calls.Load(), "network calls")
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	assert.Empty(t, left)
	t.Logf("F22: %d cases, each in at most %v, %d network calls, %d files written", len(rows), longest.Round(time.Microsecond), calls.Load(), len(left))
}

// A file that others wrote or may replace is not loaded, wherever it is named: a plugin by path, search path or link;
// CUDA of others next to a plugin.
func TestR50_othersPluginIsNotLoaded(t *testing.T) {
	emptyHome(t)
	for _, row := range []struct {
		name string
		lay  func(dir, library string)
	}{
		{"a stranger's", func(_, library string) { giveAway(t, library) }},
		{"a stranger's, in a sticky folder", func(dir, library string) {
			giveAway(t, library)
			require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
		}},
		{"in a stranger's folder", func(dir, _ string) { giveAway(t, dir) }},
		{"a stranger's link", func(_, library string) {
			require.NoError(t, os.Rename(library, library+"2"))
			require.NoError(t, os.Symlink(library+"2", library))
			giveAway(t, library)
		}},
		{"a link in everybody's folder", func(dir, library string) {
			own := t.TempDir()
			require.NoError(t, os.Rename(library, filepath.Join(own, "a.so")))
			require.NoError(t, os.Symlink(filepath.Join(own, "a.so"), library))
			require.NoError(t, os.Chmod(dir, 0o777))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "lib")
			require.NoError(t, os.Mkdir(dir, 0o700))
			library := filepath.Join(dir, "pjrt_plugin_mine.so")
			require.NoError(t, os.WriteFile(library, []byte("never loaded"), 0o600))
			row.lay(dir, library)
			t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", dir)
			for _, plugin := range []string{library, "mine"} {
				_, err := xla.Open(t.Context(), plugin)
				require.ErrorIs(t, err, xla.ErrPluginInsecure)
				_, err = xla.Find(plugin)
				require.ErrorIs(t, err, xla.ErrPluginInsecure)
			}
		})
	}
	sticky := t.TempDir()
	beside := filepath.Join(sticky, "nvidia", "cu13")
	library := filepath.Join(sticky, "lib", "xla_cuda_plugin.so")
	for _, dir := range []string{filepath.Join(beside, "nvvm", "libdevice"), filepath.Join(beside, "bin"), filepath.Dir(library)} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	none := func(string) string { return "" }
	require.Contains(t, pjrt.Environment(library, none)["XLA_FLAGS"], beside)
	giveAway(t, filepath.Join(sticky, "nvidia"))
	require.NotContains(t, pjrt.Environment(library, none), "XLA_FLAGS")
}
