package xla_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/probe"
)

const fastMath = "--xla_cpu_enable_fast_math=true --xla_cpu_fast_math_honor_nans=false"

// TestR01_F44_theCacheKnowsTheEnvironment: the environment that a plugin reads is part of the key, inline or in the
// file that XLA_FLAGS names. Each value is tried in two processes: the first finds nothing, the second its own program.
//
//lazo:norace
func TestR01_F44_theCacheKnowsTheEnvironment(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "compiled")
	file := filepath.Join(t.TempDir(), "flags")
	across, own := 0, 0
	rows := []struct {
		name, env, file string
		flag            float32
	}{
		{"none", "XLA_FLAGS=", "", 1},
		{"inline", "XLA_FLAGS=" + fastMath, "", 0},
		{"inline, another value", "XLA_FLAGS=" + strings.Replace(fastMath, "nans=false", "nans=true", 1), "", 1},
		{"a file", "XLA_FLAGS=" + file, fastMath + "\n--xla_cpu_fast_math_honor_infs=false", 0},
		{"the same file, other content", "XLA_FLAGS=" + file, "--xla_cpu_enable_fast_math=false", 1},
		{"another variable", "ONEDNN_MAX_CPU_ISA=AVX2", "", 1},
	}
	for _, row := range rows {
		require.NoError(t, os.WriteFile(file, []byte(row.file), 0o600))
		for _, hits := range []*int{&across, &own} {
			got := task{Cache: cache}.inChild(t, "", row.env)
			require.Zero(t, got.code, got.stderr)
			require.Empty(t, got.Error, row.name)
			require.Equal(t, row.flag, got.Flag, row.name)
			*hits += got.Hits
		}
	}
	// A file with the flags given inline before is the same.
	require.NoError(t, os.WriteFile(file, []byte(fastMath), 0o600))
	require.Equal(t, 1, task{Cache: cache}.inChild(t, "", "XLA_FLAGS="+file).Hits)
	require.Zero(t, across)
	require.Equal(t, len(rows), own)
	t.Logf("F44: %d environments: %d hits across values, %d of their own", len(rows), across, own)
}

// TestR01_flagsThatChangeLater: the plugin reads flags once, so a change is an error and not ignored.
func TestR01_flagsThatChangeLater(t *testing.T) {
	got := task{Set: fastMath}.inChild(t, "", "XLA_FLAGS=--xla_cpu_enable_fast_math=false")
	require.Zero(t, got.code, got.stderr)
	require.True(t, got.Flags)
	require.Regexp(t, `^xla: open /.*: the plugin does not take these XLA_FLAGS: they are "--xla_cpu_enable_fast_math=true .*", and were "--xla_cpu_enable_fast_math=false" when this process first opened the plugin`, got.Error)
}

// TestR22_unknownFlags: flags for which XLA would end the process are an error of Open, for each plugin.
func TestR22_unknownFlags(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "none")
	for _, row := range []struct{ flags, want string }{
		{"--xla_no_such_flag=1", `XLA_FLAGS names --xla_no_such_flag=1, which this plugin does not know$`},
		{"--xla_no_such_flag=1 --xla_nor_this", `XLA_FLAGS names --xla_no_such_flag=1 --xla_nor_this, which`},
		{"--xla_cpu_enable_fast_math=maybe", `Couldn't interpret value maybe for flag xla_cpu_enable_fast_math`},
		{"--xla_backend_extra_options=nonsense", `Unknown command line argument 'nonsense'`},
		{"--xla_force_host_platform_device_count=0", `_count=0": expected a whole number of devices from 1 to 2048$`},
		{"--xla_flags_reset=true", `xla_flags_reset is not supported`},
		{empty, `/none" begins with no "-", so it names a file: open .*/none: no such file`},
		{t.TempDir(), `is not a regular file \(d---------: a folder, expected a file\)`},
	} {
		got := task{}.inChild(t, "", "XLA_FLAGS="+row.flags)
		require.Zero(t, got.code, "%s: %s", row.flags, got.stderr)
		assert.True(t, got.Flags, row.flags)
		assert.False(t, got.Damaged, row.flags)
		assert.Contains(t, got.Error, probe.ErrFlags.Error())
		assert.Regexp(t, row.want, got.Error)
	}
}
