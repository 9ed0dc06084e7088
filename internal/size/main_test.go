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
		"a": {files: 1, code: 10, tests: 2, names: 7}, // A; T, its Field and Method; I and its M; F
		"b": {files: 1, code: 2},
	}, got)
	write("a/a.go", "package")
	_, err = measure(root)
	require.Error(t, err)
}
