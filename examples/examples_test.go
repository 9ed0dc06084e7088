// Package examples runs the programs that show one thing at each level.
package examples

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
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
			out, stderr := said(t, plugintest.Program(t, row.name))
			match := regexp.MustCompile(`^test accuracy: ([01]\.\d{3})\n$`).FindStringSubmatch(string(out))
			require.NotNil(t, match, string(out))
			accuracy, err := strconv.ParseFloat(match[1], 64)
			require.NoError(t, err)
			require.Greater(t, accuracy, 0.88, "a linear classifier of these digits")
			require.Contains(t, stderr, "1000/1000 - ")
			t.Logf("%s: %d lines of code, Ciclo %d; test accuracy %.3f", row.name, lines, row.ciclo, accuracy)
		})
	}
}

// The whole of the program is 15 lines, and the mean over three seeds is what a network of this size comes to.
func TestFit(t *testing.T) {
	text, err := os.ReadFile("fit/main.go")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(text), "\nfunc main() {\n")
	require.True(t, found)
	body, _, _ = strings.Cut(body, "\n}\n")
	lines := strings.Count(body, "\n") + 1
	require.LessOrEqual(t, lines, 15)
	fit, sum := plugintest.Program(t, "fit"), 0.0
	for _, seed := range seeds {
		out, stderr := said(t, fit, "-seed", seed)
		match := regexp.MustCompile(`^test accuracy: ([01]\.\d{3})\n$`).FindStringSubmatch(string(out))
		require.NotNil(t, match, string(out))
		accuracy, err := strconv.ParseFloat(match[1], 64)
		require.NoError(t, err)
		sum += accuracy
		require.Contains(t, stderr, "epoch 10/10 - ")
	}
	t.Logf("%d lines; mean test accuracy of the seeds: %.3f", lines, sum/float64(len(seeds)))
	require.GreaterOrEqual(t, sum/float64(len(seeds)), 0.91)
}

// The whole program is 35 lines, from the file with its texts and missing values to a saved model and an answer for one
// more row. Its mean over the seeds, each with its own split, is not below Keras's (docs/maintain/keras.md).
func TestTabular(t *testing.T) {
	lines := linesOf(t, "tabular/main.go")
	require.LessOrEqual(t, lines, 35)
	table, err := filepath.Abs("tabular/penguins.csv")
	require.NoError(t, err)
	tabular, sum := plugintest.Program(t, "tabular"), 0.0
	t.Chdir(t.TempDir())
	for _, seed := range seeds {
		out, _ := said(t, tabular, "-seed", seed, table)
		sum += numbersOf(t, `^test accuracy: (\S+)\nthe bird is: Chinstrap\n$`, out)[0]
	}
	t.Logf("%d lines; mean test accuracy of the seeds: %.3f", lines, sum/float64(len(seeds)))
	require.GreaterOrEqual(t, sum/float64(len(seeds)), 0.97)
	saved, err := flaxlike.Describe("penguins.safetensors")
	require.NoError(t, err)
	require.Equal(t, []string{"Adelie", "Chinstrap", "Gentoo"}, saved.Classes[""], "of the preparation")
	require.NoError(t, json.Unmarshal(saved.Preparation, new(tables.Preparation)))
}

// It prints a value on its way, and the line that makes the first NaN, as docs/guide/09-debugging.md shows.
func TestEager(t *testing.T) {
	out, _ := said(t, plugintest.Program(t, "eager"))
	lines := strings.Split(string(out), "\n")
	require.Equal(t, "sums: [[3] [0]]", lines[0])
	place := regexp.MustCompile(`eager/main\.go:(\d+): Div\(\(Float32\)\[2, 2\], \(Float32\)\[2, 1\]\) -> \(Float32\)\[2, 2\] is the first to make NaN`).FindStringSubmatch(lines[1])
	require.NotNil(t, place, lines[1])
	text, err := os.ReadFile("eager/main.go")
	require.NoError(t, err)
	at, err := strconv.Atoi(place[1])
	require.NoError(t, err)
	require.Contains(t, strings.Split(string(text), "\n")[at-1], "graph.Div(")
	guide, err := os.ReadFile("../docs/guide/09-debugging.md")
	require.NoError(t, err)
	require.Contains(t, string(guide), string(out), "the output in docs/guide/09-debugging.md")
	_, body, found := strings.Cut(string(text), "\nfunc step")
	require.True(t, found)
	t.Logf("%d lines below the imports", strings.Count(body, "\n"))
}

// Two models of one state train in turns, and the generator's numbers come to lie where the data are.
func TestGAN(t *testing.T) {
	lines := linesOf(t, "gan/main.go")
	require.LessOrEqual(t, lines, 60)
	out, _ := said(t, plugintest.Program(t, "gan"))
	n := numbersOf(t, `^mean of the data: 4, of the generator: (\S+) at first, (\S+) at last\n$`, out)
	require.Greater(t, math.Abs(4-n[0]), 2.0)
	require.Less(t, math.Abs(4-n[1]), 0.5)
	t.Logf("%d lines of code; distance of the means %.2f at first, %.2f at last", lines, math.Abs(4-n[0]), math.Abs(4-n[1]))
}

// The rate that a sweep suggests trains well.
func TestRateFinder(t *testing.T) {
	lines := linesOf(t, "lrfinder/main.go")
	require.LessOrEqual(t, lines, 40)
	out, _ := said(t, plugintest.Program(t, "lrfinder"))
	n := numbersOf(t, `^suggested rate: (\S+); loss with it: (\S+) at first, (\S+) at last\n$`, out)
	require.Greater(t, n[0], 1e-3)
	require.Less(t, n[0], 1e-1)
	require.Less(t, n[2], n[1]/4)
	t.Logf("%d lines of code; rate %.4f, loss %.3f to %.3f", lines, n[0], n[1], n[2])
}

// numbersOf reads the numbers in what a program says.
func numbersOf(t *testing.T, pattern string, out []byte) (numbers []float64) {
	t.Helper()
	match := regexp.MustCompile(pattern).FindSubmatch(out)
	require.NotNil(t, match, string(out))
	for _, m := range match[1:] {
		v, err := strconv.ParseFloat(string(m), 64)
		require.NoError(t, err)
		numbers = append(numbers, v)
	}
	return numbers
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

// Programs that take 19 to 41 lines with Keras: a folder of images, texts, several inputs and outputs. Each reaches the
// result of the Keras program next to it (peer.py).
func TestFitPrograms(t *testing.T) {
	for _, row := range []struct {
		name   string
		lines  int
		args   []string
		floors map[string]float64
		most   map[string]float64
	}{
		{"images", 40, nil, map[string]float64{"accuracy": 0.96}, nil},
		{"text", 45, []string{"the tea was cold but the view was not bad"}, map[string]float64{"accuracy": 0.99}, nil},
		{"outputs", 60, nil, map[string]float64{"digit_accuracy": 0.96, "rule_accuracy": 0.97}, map[string]float64{"ink_mae": 0.06}},
	} {
		t.Run(row.name, func(t *testing.T) {
			lines := linesOf(t, filepath.Join(row.name, "main.go"))
			require.LessOrEqual(t, lines, row.lines)
			out, _ := said(t, plugintest.Program(t, row.name), row.args...)
			figures := map[string]float64{}
			for _, match := range regexp.MustCompile(`(?m)^test (\w+): ([01]\.\d{3})$`).FindAllStringSubmatch(string(out), -1) {
				v, err := strconv.ParseFloat(match[2], 64)
				require.NoError(t, err)
				figures[match[1]] = v
			}
			require.Len(t, figures, len(row.floors)+len(row.most), string(out))
			for name, floor := range row.floors {
				require.GreaterOrEqual(t, figures[name], floor, name)
			}
			for name, most := range row.most {
				require.LessOrEqual(t, figures[name], most, name)
			}
			switch row.name {
			case "images":
				require.Regexp(t, `(?m)^the first test image shows \d$`, string(out))
			case "text":
				require.Contains(t, string(out), `"the tea was cold but the view was not bad" is a good review`)
			}
			t.Logf("%s: %d lines; %v", row.name, lines, figures)
		})
	}
}
