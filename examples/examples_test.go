// Package examples runs the programs that show one thing at each level.
package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The same training at each level: it learns, and takes at most as many lines as Ciclo's own program of that kind (its
// examples/flax/01, 02 and 03, without comments and blank lines; those plot the history besides).
func TestLevels(t *testing.T) {
	for _, row := range []struct {
		name  string
		ciclo int
	}{{"manual", 70}, {"loop", 65}, {"train", 113}} {
		t.Run(row.name, func(t *testing.T) {
			lines := linesOf(t, filepath.Join(row.name, "main.go"))
			require.LessOrEqual(t, lines, row.ciclo)
			var stderr bytes.Buffer
			child := exec.Command("go", "run", "./"+row.name)
			child.Stderr = &stderr
			out, err := child.Output()
			require.NoError(t, err, stderr.String())
			match := regexp.MustCompile(`^test accuracy: ([01]\.\d{3})\n$`).FindStringSubmatch(string(out))
			require.NotNil(t, match, string(out))
			accuracy, err := strconv.ParseFloat(match[1], 64)
			require.NoError(t, err)
			require.Greater(t, accuracy, 0.88, "a linear classifier of these digits")
			require.Contains(t, stderr.String(), "1000/1000 - ")
			t.Logf("%s: %d lines of code, Ciclo %d; test accuracy %.3f", row.name, lines, row.ciclo, accuracy)
		})
	}
}

// It prints a value on its way, and the line that makes the first NaN.
func TestEager(t *testing.T) {
	out, err := exec.Command("go", "run", "./eager").Output()
	require.NoError(t, err)
	lines := strings.Split(string(out), "\n")
	require.Equal(t, "sums: [[3] [0]]", lines[0])
	place := regexp.MustCompile(`eager/main\.go:(\d+): Div\(\(Float32\)\[2 2\], \(Float32\)\[2 1\]\) -> \(Float32\)\[2 2\] is the first to make NaN`).FindStringSubmatch(lines[1])
	require.NotNil(t, place, lines[1])
	text, err := os.ReadFile("eager/main.go")
	require.NoError(t, err)
	at, err := strconv.Atoi(place[1])
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(text), "\n")[at-1], "graph.Div(")
	_, body, found := strings.Cut(string(text), "\nfunc step")
	require.True(t, found)
	t.Logf("%d lines below the imports", strings.Count(body, "\n"))
}

// linesOf counts the lines that are neither blank nor a comment.
func linesOf(t *testing.T, path string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
