package pjrt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionCheck(t *testing.T) {
	rows := []struct {
		name    string
		version Version
		ok      bool
	}{
		{"oldest", Version{0, MinMinor, MinTableSize}, true},
		{"newer minor", Version{0, MinMinor + 40, MinTableSize + 400}, true},
		{"older minor", Version{0, MinMinor - 1, MinTableSize}, false},
		{"newer major", Version{1, 0, MinTableSize}, false},
		{"negative major", Version{-1, MinMinor, MinTableSize}, false},
		{"short table", Version{0, MinMinor, MinTableSize - 8}, false},
		{"no version at all", Version{0, 0, 16}, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := row.version.Check("/p.so")
			if row.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrABI)
			var abi *ABIError
			require.ErrorAs(t, err, &abi)
			assert.Equal(t, row.version, abi.Got)
			assert.Contains(t, err.Error(), row.version.String(), "the plugin's version")
			assert.Contains(t, err.Error(), "0.81", "the version needed")
		})
	}
}

// These end before anything is loaded, so the process may ask without a child.
// What must be loaded to be found out is in package probe's tests.
func TestInspectRefusesFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600))
	rows := []struct {
		name, path string
		want       error
	}{
		{"missing", filepath.Join(dir, "none.so"), ErrNotFound},
		{"directory", dir, ErrNotLoadable},
		{"text", text, ErrNotLoadable},
		{"device", os.DevNull, ErrNotLoadable},
		{"below a file", filepath.Join(text, "plugin.so"), ErrNotLoadable},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := Inspect(row.path)
			require.ErrorIs(t, err, row.want)
			assert.Contains(t, err.Error(), row.path)
		})
	}
}

func TestEnvironmentKeepsUserValues(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")
	data := filepath.Join(dir, "nvidia", "cu13")
	require.NoError(t, os.MkdirAll(filepath.Join(data, "nvvm", "libdevice"), 0o750))
	const flag = "--xla_gpu_cuda_data_dir="
	quiet := map[string]string{"TF_CPP_MIN_LOG_LEVEL": "0"}
	rows := []struct {
		name, path string
		user, want map[string]string
	}{
		{"CPU", "/p/xla_cpu_pjrt.so", nil, map[string]string{"TF_CPP_MIN_LOG_LEVEL": "2"}},
		{"user values", "/p/xla_cpu_pjrt.so", quiet, map[string]string{}},
		{"CUDA", plugin, quiet, map[string]string{"XLA_FLAGS": flag + data}},
		{
			"CUDA with the user's flags", plugin, map[string]string{"TF_CPP_MIN_LOG_LEVEL": "0", "XLA_FLAGS": "--xla_a=1"},
			map[string]string{"XLA_FLAGS": "--xla_a=1 " + flag + data},
		},
		{
			"CUDA with the user's folder", plugin, map[string]string{"TF_CPP_MIN_LOG_LEVEL": "0", "XLA_FLAGS": flag + "/mine"},
			map[string]string{},
		},
		{"CUDA without its libraries", filepath.Join(t.TempDir(), "xla_cuda_plugin.so"), quiet, map[string]string{}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := Environment(row.path, func(name string) string { return row.user[name] })
			assert.Empty(t, cmp.Diff(row.want, got))
		})
	}
}
