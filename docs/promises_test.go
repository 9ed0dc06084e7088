package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// promises are the sentences of README's "What you can rely on", each on one line and without its bold letters.
func promises(document string) (all []string) {
	_, section, _ := strings.Cut(document, "# What you can rely on\n")
	_, section, _ = strings.Cut(section, "\n- ")
	for bullet := range strings.SplitSeq(section, "\n- ") {
		text := strings.Join(strings.Fields(strings.ReplaceAll(bullet, "**", "")), " ")
		for text != "" {
			sentence, rest, more := strings.Cut(text, ". ")
			if more {
				sentence += "."
			}
			all, text = append(all, sentence), rest
		}
	}
	return all
}

// headings are the short sentences that a bullet begins with, where the next ones say the same in particular.
var headings = []string{"Errors, not panics.", "Crashes speak.", "Silence unless asked.", "Nothing is fetched unread.", "A run ends well.", "Seeds."}

// Each sentence of docs/promises.md has a row in testdata/promises.tsv, with tests that exist and skip nothing.
func TestPromises(t *testing.T) {
	document, err := os.ReadFile("promises.md")
	require.NoError(t, err)
	text, err := os.ReadFile("testdata/promises.tsv")
	require.NoError(t, err)
	rows := promiseRows(string(text))
	tests := testFunctions(t, "..")
	sentences, named := 0, 0
	for _, promise := range promises(string(document)) {
		if slices.Contains(headings, promise) {
			continue
		}
		sentences++
		row := rowOf(rows, promise)
		list := rows[row]
		if len(list) == 0 {
			t.Errorf("docs/testdata/promises.tsv has no row, or no test, for the promise %q", promise)
		}
		for _, name := range list {
			named++
			skips, there := tests[name]
			if !there {
				t.Errorf("there is no test %s, for the promise %q", name, promise)
			}
			if skips {
				t.Errorf("%s may skip, and with it the promise %q", name, promise)
			}
		}
		delete(rows, row)
	}
	require.Empty(t, rows, "rows of docs/testdata/promises.tsv that docs/promises.md does not have")
	require.Greater(t, sentences, 8, "the promises were not found")
	t.Logf("%d promises, %d tests", sentences, named)
}

// Each fault of a job of several processes has its exit codes and tests that exist in testdata/faults.tsv.
func TestFaults(t *testing.T) {
	text, err := os.ReadFile("testdata/faults.tsv")
	require.NoError(t, err)
	tests, number := testFunctions(t, ".."), 54
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, cells, 4, line)
		require.Equal(t, fmt.Sprintf("F%d", number), cells[0])
		for _, name := range strings.Fields(cells[3]) {
			require.Contains(t, tests, name, line)
		}
		number++
	}
	require.Equal(t, 67, number, "rows are missing")
}

// rowOf is the row of a promise: its text, or its beginning and "…".
func rowOf(rows map[string][]string, promise string) string {
	for row := range rows {
		if begin, more := strings.CutSuffix(row, " …"); more && strings.HasPrefix(promise, begin+" ") {
			return row
		}
	}
	return promise
}

// promiseRows are the tests that each row of testdata/promises.tsv names, by what they hold.
func promiseRows(text string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		if promise, tests, found := strings.Cut(line, "\t"); found && !strings.HasPrefix(line, "#") {
			rows[promise] = strings.Fields(tests)
		}
	}
	return rows
}

// testFunctions are the tests below a folder that take a *testing.T, and whether they call Skip.
func testFunctions(t *testing.T, root string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir // .tools, where `make conformance` may be at work at the same time
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			function, is := d.(*ast.FuncDecl)
			if !is || function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Test") || function.Body == nil {
				continue
			}
			skips := false
			ast.Inspect(function.Body, func(n ast.Node) bool {
				if s, is := n.(*ast.SelectorExpr); is && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") {
					skips = true
				}
				return true
			})
			found[function.Name.Name] = found[function.Name.Name] || skips
		}
		return nil
	}))
	return found
}

func TestPromisesAreFound(t *testing.T) {
	document := "# What you can rely on\n\nEach is tested.\n\n- **Nothing x.** It is\n  so: always. And `y.Z`.\n- **One: two.**\n"
	require.Equal(t, []string{"Nothing x.", "It is so: always.", "And `y.Z`.", "One: two."}, promises(document))
	table := "# a comment\twith a tab\nIt is so: always.\tTestA TestB\n"
	rows := promiseRows(table)
	require.Equal(t, map[string][]string{"It is so: always.": {"TestA", "TestB"}}, rows)
	rows["No a …"] = nil
	require.Equal(t, "It is so: always.", rowOf(rows, "It is so: always."))
	require.Equal(t, "No a …", rowOf(rows, "No a b."))
	require.Equal(t, "No ab.", rowOf(rows, "No ab."))
}
