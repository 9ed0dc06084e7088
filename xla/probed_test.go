package xla_test

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// TestR23_F51_installedPluginRots: an installed plugin with changed bits, but the size, time and inode of its receipt,
// is a typed error of Open and not a crash.
//
//lazo:norace
func TestR23_F51_installedPluginRots(t *testing.T) {
	installed := plugintest.Uncached(t).Plugin().Path
	emptyHome(t)
	root := t.TempDir()
	plugin, err := install.Install(t.Context(), xla.CPU, install.Options{Root: root, From: installed})
	require.NoError(t, err)
	sound := task{Root: root}
	got := sound.inChild(t, "")
	require.Zero(t, got.code, got.stderr)
	require.Empty(t, got.Error)

	library, err := elf.Open(plugin.Path)
	require.NoError(t, err)
	defer library.Close()
	file, err := os.OpenFile(plugin.Path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	typed := 0
	sections := []string{".dynamic", ".rela.dyn", ".text", ".rodata"}
	for _, name := range sections {
		section := library.Section(name)
		require.NotNil(t, section, name)
		was := make([]byte, min(section.FileSize, 1<<16))
		at := int64(section.Offset + (section.FileSize-uint64(len(was)))/2)
		_, err := file.ReadAt(was, at)
		require.NoError(t, err)
		_, err = file.WriteAt(make([]byte, len(was)), at)
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(plugin.Path, info.ModTime(), info.ModTime()))
		got := sound.inChild(t, "")
		assert.Zero(t, got.code, "%s: %s", name, got.stderr)
		assert.True(t, got.Damaged, "%s: %s", name, got.Error)
		assert.Regexp(t, `^xla: open "cpu": .*damaged.*: to repair it: go run .*lazo install cpu$`, got.Error)
		if got.Damaged {
			typed++
		}
		_, err = file.WriteAt(was, at)
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(plugin.Path, info.ModTime(), info.ModTime()))
	}
	got = sound.inChild(t, "")
	require.Empty(t, got.Error, "the damage was undone")
	t.Logf("F51: %d plugins rotted behind the same size, time and inode: %d typed errors", len(sections), typed)
}
