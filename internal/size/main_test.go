//lazo:norace
package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeasure(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("a/a.go", "// Package a is one.\npackage a\n\nconst A, b = 1, `two\nlines`\n\n// T is a type.\ntype T[X any] struct { Field, hidden int } // behind code\n\n"+
		"func (T[X]) Method() {}\nfunc (t) Method() {}\ntype t struct{ Field int }\ntype I interface{ M(); m() }\nfunc F() {\n\t/* a\n\tcomment */\n}\n")
	write("a/a_test.go", "package a\n\nvar X = 1\n")
	write("b/main.go", "package main\n\nfunc Main() {}\n")
	write("a/testdata/c.go", "no Go")
	got, err := measure(root)
	require.NoError(t, err)
	require.Equal(t, map[string]size{
		"a": {files: 1, code: 10, tests: 2, names: 7, words: 12}, // A; T, its Field and Method; I and its M; F
		"b": {files: 1, code: 2},
	}, got)
	write("a/a.go", "package")
	_, err = measure(root)
	require.Error(t, err)
}

// No package is larger than its budget. A commit that raises one says why; `go run ./internal/size -write` prints a new
// one.
func TestBudget(t *testing.T) {
	sizes, err := measure("../..")
	require.NoError(t, err)
	budget, err := budgetOf(budgetText)
	require.NoError(t, err)
	require.Empty(t, over(sizes, budget), "make it smaller, or raise internal/size/budget.txt and say why in the commit")
	for folder := range budget {
		require.Contains(t, sizes, folder, "internal/size/budget.txt names a folder without Go files")
	}
}

// The control of TestBudget.
func TestOver(t *testing.T) {
	budget, err := budgetOf("50 2 100 a\n")
	require.NoError(t, err)
	require.Empty(t, over(map[string]size{"a": {code: 50, names: 2, words: 100}}, budget))
	require.Equal(t, []string{"a has 3 exported names, its budget is 2", "b has 1 lines of code, its budget is 0"},
		over(map[string]size{"a": {code: 50, names: 3, words: 100}, "b": {code: 1}}, budget))
	_, err = budgetOf("50 2 a\n")
	require.ErrorContains(t, err, "expected lines, names, words and a folder")
}
