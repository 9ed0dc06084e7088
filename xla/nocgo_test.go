package xla

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// S62: without cgo the CPU is the Go backend, and other plugins are an error.
func TestWithoutCgo(t *testing.T) {
	t.Setenv(searchPathVariable, "")
	o, library := &openOptions{root: t.TempDir()}, filepath.Join(t.TempDir(), "plugin.so")
	require.NoError(t, os.WriteFile(library, nil, 0o600))
	for _, plugin := range []string{CPU, Go, CUDA, "/a/plugin.so"} {
		same, err := withoutCgo(plugin, o, true)
		require.NoError(t, err)
		require.Equal(t, plugin, same)
	}
	for _, plugin := range []string{CPU, "cpu81", Go} {
		found, err := withoutCgo(plugin, o, false)
		require.NoError(t, err)
		require.Equal(t, Go, found)
	}
	for _, plugin := range []string{CUDA, TPU, library} {
		_, err := withoutCgo(plugin, o, false)
		require.ErrorIs(t, err, pjrt.ErrNoCgo)
		require.ErrorContains(t, err, `or open "go"`)
	}
	for plugin, hint := range map[string]string{"gpuu": `xla: no PJRT plugin found: "gpuu"; did you mean "cuda"?`, "gpu": `"cuda"?`, "CUDA": `"cuda"?`, "tpuu": `"tpu"?`, "metal": "known    cpu,", "/a/plugin.so": "/a/plugin.so"} {
		_, err := withoutCgo(plugin, o, false)
		require.ErrorIs(t, err, ErrPluginNotFound, plugin)
		require.NotErrorIs(t, err, pjrt.ErrNoCgo, plugin)
		require.ErrorContains(t, err, hint, plugin)
	}
}

// The quickstart, built without cgo, trains on GoMLX's Go backend.
func TestWithoutCgo_quickstart(t *testing.T) {
	if os.Getenv("LAZO_TEST_PORTABLE") == "" {
		t.Skip("make portable runs it, which builds without cgo")
	}
	binary := filepath.Join(t.TempDir(), "quickstart")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", binary, "../examples/quickstart")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	said, err = exec.CommandContext(t.Context(), binary).CombinedOutput()
	require.NoError(t, err, string(said))
	require.Regexp(t, `without cgo`, string(said))
	require.Regexp(t, `test accuracy: 0\.9`, string(said))
}
