//lazo:norace
package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// The README's program is this one: same text, and it runs.
func TestReadme(t *testing.T) {
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	shown, _, ok = strings.Cut(shown, "```")
	require.True(t, ok)
	require.Contains(t, string(program), shown, "the README shows another program than examples/quickstart/main.go")
	require.LessOrEqual(t, strings.Count(shown, "\n"), 32)

	out, err := exec.Command(plugintest.Program(t, ".")).Output()
	require.NoError(t, err)
	require.Regexp(t, `^test accuracy: 0\.9\d\d\n$`, string(out))
}
