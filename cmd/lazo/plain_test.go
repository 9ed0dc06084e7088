package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// A checkpoint of somebody else's says what it likes: none of it moves the cursor, or makes a line of the command's
// own.
func TestR51_ckptPrintsNoControlCharacters(t *testing.T) {
	dir := t.TempDir()
	f, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	evil := "loss\x1b[2J\x1b]0;owned\a\n999  2031-01-01T00:00:00Z  1  accuracy=1\r\t\u202e\u009b31m"
	require.NoError(t, f.Save(t.Context(), 7, checkpoint.Content{
		Tensors:  []checkpoint.Tensor{{Name: evil, DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}}},
		Metrics:  map[string]float64{evil: 0.5, "accuracy=1 loss": 0.25, "loss": 1},
		Sections: map[string]any{evil: evil}}))
	require.NoError(t, f.Close())
	broken := t.TempDir() // its manifest names things in errors
	require.NoError(t, os.CopyFS(broken, os.DirFS(dir)))
	manifest := filepath.Join(broken, "step-000000000007", "manifest.json")
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(manifest, append(text, evil...), 0o600))

	commands, file := 0, filepath.Join(t.TempDir(), "a\x1b[2Jb")
	for _, args := range [][]string{{"ls", dir}, {"show", dir}, {"verify", dir}, {"diff", dir, "7", "7"}, {"ls", broken}, {"show", broken}, {"verify", broken},
		{"export", dir, file}, {"export", dir, file}, {"ls", "/no\x1b[2J\nlazo: all is well"}, {"ls", dir, "--\x1b[2J"}} {
		r := run(t, append([]string{"ckpt"}, args...)...)
		for _, out := range []string{r.stdout, r.stderr} {
			require.NotRegexp(t, "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x{9f}\\x{202e}]", out, "%q", args)
			for line := range strings.Lines(out) {
				require.False(t, strings.HasPrefix(line, "999") || strings.HasPrefix(line, "lazo: all is well"), "%q", out)
			}
		}
		commands++
	}
	ls := run(t, "ckpt", "ls", dir).stdout
	require.Equal(t, 2, strings.Count(ls, "\n"), ls)
	require.Contains(t, ls, fmt.Sprintf(`  "accuracy=1 loss"=0.25 loss=1 %q=0.5`+"\n", evil))
	gone := filepath.Join(t.TempDir(), "gone")
	require.Equal(t, result{2, "", fmt.Sprintf("lazo: ckpt ls: there is no folder %q (lazo --help lists the commands)\n", gone)}, run(t, "ckpt", "ls", gone))
	t.Logf("R51: %d commands on names and files with terminal escapes and line breaks: 0 control characters, 0 forged lines", commands)
}
