package xla_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// S63: a statically linked program says why it cannot load a plugin, where glibc's dlopen would crash.
func TestStatic_quickstart(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it builds a program with libc.a")
	}
	plugintest.CPU(t) // is installed
	binary := filepath.Join(t.TempDir(), "quickstart")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-w -linkmode external -extldflags -static", "-o", binary, "../examples/quickstart")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	said, err = exec.CommandContext(t.Context(), binary).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), `xla: open "cpu": this program is statically linked, and plugins need a dynamic one: build it without -static in -ldflags or CGO_LDFLAGS; or open "go"`)
	require.NotContains(t, string(said), "SIGSEGV")
}
