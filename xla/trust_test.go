package xla_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// giveAway changes the owner of a file, folder or link, which only root can; other users make it writable for all.
func giveAway(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() == 0 {
		require.NoError(t, os.Lchown(path, 65534, 65534))
		return
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		path = filepath.Dir(path)
	}
	require.NoError(t, os.Chmod(path, 0o777)) //#nosec
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

// A compiled program of others is not loaded either, and a pipe in its place does not block.
func TestR50_othersCompiledProgramIsNotLoaded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "compiled")
	open := func() (*xla.Runtime, *bytes.Buffer) {
		log := &bytes.Buffer{}
		return plugintest.Uncached(t, xla.CompileCache(dir, 0), xla.Log(slog.New(slog.NewTextHandler(log, nil)))), log
	}
	r, _ := open()
	require.Equal(t, []float32{31, 32}, addTo(t, r, 10))
	entry := entriesOf(t, dir)[0]
	for name, spoil := range map[string]func(){
		"a stranger's": func() { giveAway(t, entry) },
		"everybody's":  func() { require.NoError(t, os.Chmod(entry, 0o666)) },
		"a pipe":       func() { require.NoError(t, os.Remove(entry)); require.NoError(t, unix.Mkfifo(entry, 0o600)) },
		"a link": func() {
			elsewhere := filepath.Join(t.TempDir(), "a")
			require.NoError(t, os.Rename(entry, elsewhere))
			require.NoError(t, os.Symlink(elsewhere, entry))
		},
	} {
		t.Run(name, func(t *testing.T) {
			spoil()
			r, log := open()
			require.Equal(t, []float32{31, 32}, addTo(t, r, 10))
			require.Zero(t, xla.CacheHits(r))
			require.Contains(t, log.String(), "what=load")
			again, _ := open()
			addTo(t, again, 10)
			require.Equal(t, 1, xla.CacheHits(again), "it was replaced")
		})
	}
	giveAway(t, dir)
	_, err := xla.Open(t.Context(), xla.CPU, xla.CompileCache(dir, 0))
	require.ErrorIs(t, err, xla.ErrPluginInsecure)
	require.ErrorContains(t, err, "xla: compile cache: "+dir)
	_, err = xla.Open(t.Context(), xla.CPU, xla.CompileCache(filepath.Join(dir, "below"), 0))
	require.ErrorIs(t, err, xla.ErrPluginInsecure)
}
