// Package docs_test compiles and runs what the documents show: each Go block of a from-*.md, of functional.md,
// selection.md and state-dependent-data.md is, word for word, part of a test or an example of from_*_test.go or of the
// test file of that name. A Go block of guide/*.md is part of one of these, of guide_test.go, or of a program in
// ../examples.
package docs_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// What snippets may use without saying where it comes from; quote no line that calls these.

// cpu is opened once, by the first that asks; `make setup` installs the plugin.
var cpu = sync.OnceValue(func() *xla.Runtime {
	return must.M1(xla.Open(context.Background(), xla.CPU, must.M1(plugintest.Kept())))
})

func jit() strategies.Strategy { return strategies.Jit(cpu()) }

// digits is 256 images [8, 8, 1] with their labels to train on, and 64 to test with.
func digits() (training, test *data.Set) {
	training, test = must.M2(data.Digits())
	return must.M1(training.Slice(0, 256)), must.M1(test.Slice(0, 64))
}

// line is n examples of y = 3x + 1, both [n, 1].
func line(n int) *data.Set {
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i%16)/8 - 1
		y[i] = 3*x[i] + 1
	}
	return must.M1(data.New(data.X(x, n, 1), data.Y(y, n, 1)))
}

// Every Go block of a document is part of a function that is compiled and run.
func TestSnippets(t *testing.T) {
	bodies := functions(t)
	programs := append(programs(t), bodies...)
	for _, path := range documents(t) {
		found, bodies, least := blocks(t, path), bodies, 3
		if strings.HasPrefix(path, "guide/") {
			bodies, least = programs, 1
		}
		if len(found) < least {
			t.Errorf("%s: %d Go blocks, expected %d or more", path, len(found), least)
		}
		for _, b := range found {
			if !isWithin(b.lines, bodies) {
				t.Errorf("%s:%d: the block that begins with %q is in no Example or Test of docs/from_*_test.go or of the document's own test file, nor, for guide/*.md, in a program of examples", path, b.at, b.lines[0])
			}
		}
		t.Logf("%s: %d blocks", path, len(found))
	}
}

// The search tells apart what differs in one word, and does not mind the indentation.
func TestSnippetsTellApart(t *testing.T) {
	body := [][]string{{"\tif a {", "\t\tb()", "", "\t\tc()", "\t}"}}
	for name, row := range map[string]struct {
		block []string
		found bool
	}{
		"all":                 {[]string{"if a {", "\tb()", "", "\tc()", "}"}, true},
		"part":                {[]string{"b()", "", "c()"}, true},
		"one line":            {[]string{"c()"}, true},
		"another word":        {[]string{"b()", "", "d()"}, false},
		"another indentation": {[]string{"if a {", "b()"}, false},
		"a line left out":     {[]string{"b()", "c()"}, false},
		"longer":              {[]string{"c()", "}", "d()"}, false},
	} {
		require.Equal(t, row.found, isWithin(row.block, body), name)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("from-*.md")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	chapters, err := filepath.Glob("guide/[0-9]*.md")
	require.NoError(t, err)
	require.Len(t, chapters, 9)
	return append(append(paths, chapters...), "functional.md", "selection.md", "state-dependent-data.md")
}

type block struct {
	at    int // the line of its fence, from 1
	lines []string
}

func blocks(t *testing.T, path string) (list []block) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	open, isGo := false, false
	for i, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !open:
			open, isGo = true, fence == "go"
			if isGo {
				list = append(list, block{at: i + 1})
			}
		case isFence:
			open = false
			if last := len(list) - 1; isGo && len(list[last].lines) == 0 {
				t.Errorf("%s:%d: an empty block", path, i+1)
				list = list[:last]
			}
		case open && isGo:
			list[len(list)-1].lines = append(list[len(list)-1].lines, line)
		}
	}
	require.False(t, open, "%s: a block has no end", path)
	return list
}

// functions returns the source lines of each Test and Example.
func functions(t *testing.T) (bodies [][]string) {
	t.Helper()
	paths, err := filepath.Glob("from_*_test.go")
	require.NoError(t, err)
	for _, path := range append(paths, "functional_test.go", "guide_test.go", "selection_test.go", "state_dependent_data_test.go") {
		bodies = append(bodies, bodiesOf(t, path, func(name string) bool {
			return strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Test")
		})...)
	}
	return bodies
}

// programs returns the source lines of each function of the examples that the guide quotes. Tests run these programs.
func programs(t *testing.T) (bodies [][]string) {
	t.Helper()
	for _, name := range []string{"eager", "fit", "images", "loop", "manual", "mnist", "quickstart", "serve", "tabular", "text"} {
		bodies = append(bodies, bodiesOf(t, filepath.Join("../examples", name, "main.go"), func(string) bool { return true })...)
	}
	return bodies
}

// bodiesOf returns the source lines of the functions of a file whose names are wanted.
func bodiesOf(t *testing.T, path string, wanted func(name string) bool) (bodies [][]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	files, lines := token.NewFileSet(), strings.Split(string(text), "\n")
	file, err := parser.ParseFile(files, path, text, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && wanted(f.Name.Name) {
			bodies = append(bodies, lines[files.Position(f.Pos()).Line:files.Position(f.End()).Line-1])
		}
	}
	return bodies
}

func isWithin(block []string, bodies [][]string) bool {
	want := outdent(block)
	for _, body := range bodies {
		for i := 0; i+len(block) <= len(body); i++ {
			if outdent(body[i:i+len(block)]) == want {
				return true
			}
		}
	}
	return false
}

// outdent joins the lines without the tabs that all of them begin with; empty lines have no say.
func outdent(lines []string) string {
	common := -1
	for _, line := range lines {
		if tabs := len(line) - len(strings.TrimLeft(line, "\t")); strings.TrimSpace(line) != "" && (common < 0 || tabs < common) {
			common = tabs
		}
	}
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintln(&b, strings.TrimRight(line[min(max(common, 0), len(line)):], " \t"))
	}
	return b.String()
}
