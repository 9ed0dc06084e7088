package pjrt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		{"CPU", "/p/xla_cpu_pjrt.so", nil, map[string]string{"TF_CPP_MIN_LOG_LEVEL": "3"}},
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

// libtpu asks the cloud's metadata server about the machine, for a minute, unless variables prevent it. They are set
// only where no TPU can be.
func TestEnvironmentWithoutTPU(t *testing.T) {
	without := map[string]string{"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TF_CPP_MIN_LOG_LEVEL": "2"}
	with := map[string]string{"TF_CPP_MIN_LOG_LEVEL": "2"}
	const device = "sys/bus/pci/devices/0000:00:0"
	intel := map[string]string{device + "1.0/vendor": "0x8086\n", device + "1.0/class": "0x020000\n"}
	for _, row := range []struct {
		name  string
		files map[string]string
		path  string
		user  map[string]string
		want  map[string]string
	}{
		{"no TPU", nil, "/p/libtpu.so", nil, without},
		{"another plugin", nil, "/p/xla_cpu_pjrt.so", nil, map[string]string{"TF_CPP_MIN_LOG_LEVEL": "3"}},
		{"the user's value", nil, "/p/libtpu.so", map[string]string{"TPU_SKIP_MDS_QUERY": "0"}, map[string]string{"TPU_WORKER_HOSTNAMES": "localhost", "TF_CPP_MIN_LOG_LEVEL": "2"}},
		{"a TPU on the bus", map[string]string{device + "2.0/vendor": "0x1ae0\n", device + "2.0/class": "0x088000\n"}, "/p/libtpu.so", nil, with},
		{"a device of Google's of no class", map[string]string{device + "2.0/vendor": "0x1ae0\n"}, "/p/libtpu.so", nil, with},
		{"Google's network card", map[string]string{device + "2.0/vendor": "0x1ae0\n", device + "2.0/class": "0x020000\n"}, "/p/libtpu.so", nil, without},
		{"Google's disk", map[string]string{device + "2.0/vendor": "0x1ae0\n", device + "2.0/class": "0x010802\n"}, "/p/libtpu.so", nil, without},
		{"a node of the driver", map[string]string{"dev/accel0": ""}, "/p/libtpu.so", nil, with},
		{"a node of VFIO", map[string]string{"dev/vfio/0": ""}, "/p/libtpu.so", nil, with},
		{"VFIO without a device", map[string]string{"dev/vfio/vfio": ""}, "/p/libtpu.so", nil, without},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := t.TempDir()
			for _, files := range []map[string]string{intel, row.files} {
				for name, text := range files {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o750))
					require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
				}
			}
			got := environment(root, row.path, func(name string) string { return row.user[name] })
			assert.Empty(t, cmp.Diff(row.want, got))
		})
	}
	assert.Empty(t, cmp.Diff(with, environment(t.TempDir(), "/p/libtpu.so", func(string) string { return "" })), "no bus to be seen")
}
