package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// A program that does not build, or ends without a training step, is an error with its last output. Its arguments are
// its own.
func TestPlan_programWithoutAStep(t *testing.T) {
	fake := plugintest.Fake(t)
	for _, row := range []struct{ body, want string }{
		{`println("of", os.Args[1], os.Args[2])`, "it made no training step its last output: of -n 3\n"},
		{`println("no file"); os.Exit(3)`, "it ended before a training step (exit status 3) its last output: no file\n"},
		{`os.Exit(4)`, "it ended before a training step (exit status 4)\n"},
		{`return 1`, "too many return values"},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module quick\n\ngo 1.24\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nimport \"os\"\n\nvar _ = os.Args\n\nfunc main() { "+row.body+" }\n"), 0o600))
		got := run(t, "plan", "--plugin="+fake, "--for=v5e:1x1", dir, "-n", "3")
		require.Equal(t, 1, got.code, row.body)
		require.Empty(t, got.stdout, row.body)
		require.Contains(t, got.stderr, dir, row.body)
		require.Contains(t, got.stderr, row.want, row.body)
	}
}
