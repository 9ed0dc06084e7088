package archtest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// undocumented are the public packages that may lack a doc.go or an example, "path: example", and why.
var undocumented = map[string]string{
	"managed/strategytest: example": "its one function takes a running test, which an example has not; the package comment shows the call",
}

// Each public package, also of nested modules, has its package comment only in doc.go, and an example.
func TestPublicPackagesAreDocumented(t *testing.T) {
	packages := map[string]map[string]*ast.File{}
	eachFile(t, func(name string, file *ast.File) {
		dir := path.Dir(name)
		if packages[dir] == nil {
			packages[dir] = map[string]*ast.File{}
		}
		packages[dir][path.Base(name)] = file
	})
	public, used := 0, map[string]bool{}
	for dir, files := range packages {
		if strings.Contains("/"+dir, "/internal/") || !isLibrary(files) {
			continue
		}
		public++
		for _, missing := range lacking(files) {
			at := dir + ": " + missing
			if used[at] = true; undocumented[at] == "" {
				t.Errorf("%s lacks its %s", dir, missing)
			}
		}
	}
	for at := range undocumented {
		require.True(t, used[at], "%s is excepted, and need not be: take the row away", at)
	}
	require.Greater(t, public, 20)

	parsed := func(text string) *ast.File {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", text, parser.ParseComments)
		require.NoError(t, err)
		return file
	}
	whole := map[string]*ast.File{
		"doc.go": parsed("// Package x is.\npackage x"), "x.go": parsed("package x"), "x_test.go": parsed("package x_test\nfunc ExampleX() {}"),
	}
	require.True(t, isLibrary(whole))
	require.Empty(t, lacking(whole))
	require.Equal(t, []string{"doc.go", "example"}, lacking(map[string]*ast.File{
		"doc.go": parsed("package x"), "x_test.go": parsed("package x_test\nfunc TestExample() {}"),
	}))
	require.Equal(t, []string{"package comment in doc.go alone (it is in x.go too)", "example"}, lacking(map[string]*ast.File{
		"doc.go": parsed("// Package x is.\npackage x"), "x.go": parsed("// Package x.\npackage x"),
	}))
	require.False(t, isLibrary(map[string]*ast.File{"main.go": parsed("package main")}))
	require.False(t, isLibrary(map[string]*ast.File{"x_test.go": parsed("package x_test")}))
}

// isLibrary reports whether a folder has a package that others can import.
func isLibrary(files map[string]*ast.File) bool {
	for name, file := range files {
		if libraries(name, file) {
			return true
		}
	}
	return false
}

// lacking returns the documentation that a public package of these files lacks.
func lacking(files map[string]*ast.File) (missing []string) {
	if files["doc.go"] == nil || files["doc.go"].Doc == nil {
		missing = append(missing, "doc.go")
	}
	examples := 0
	for name, file := range files {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			examples += len(doc.Examples(file))
		case name != "doc.go" && file.Doc != nil:
			missing = append(missing, "package comment in doc.go alone (it is in "+name+" too)")
		}
	}
	if examples == 0 {
		missing = append(missing, "example")
	}
	return missing
}
