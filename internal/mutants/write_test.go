package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A change within a part of another is written in both forms.
func TestRender(t *testing.T) {
	text := []byte("if a < b+1 {}")
	outer := &mutant{id: 1, from: 3, to: 10, form: []piece{{text: "!" + on + " && ("}, {from: 3, to: 10}, {text: ")"}}}
	inner := &mutant{id: 2, from: 9, to: 10, form: []piece{{text: "pick(" + on + ", "}, {from: 9, to: 10}, {text: ", 2)"}}}
	want := "if !lazoMutant(1) && (a < b+pick(lazoMutant(2), 1, 2)) {}"
	require.Equal(t, want, string(render(text, 0, len(text), []*mutant{inner, outer})))
	require.Equal(t, want, string(render(text, 0, len(text), []*mutant{outer, inner})))
	require.Equal(t, string(text), string(render(text, 0, len(text), nil)))
}

func TestWritten_isGo(t *testing.T) {
	all, err := load(".", []string{"./testdata/toy"})
	require.NoError(t, err)
	found := find(all[0])
	for i, m := range found {
		m.id = i + 1
	}
	files := written(all[0], found, len(found))
	require.Contains(t, files, filepath.Join(all[0].Dir, "lazo_mutants_generated.go"))
	require.Len(t, files, 1+len(all[0].texts))
	for path, text := range files {
		_, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		require.NoError(t, err, "%s", text)
	}
}
