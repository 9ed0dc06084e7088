package xla_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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
