package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// loud is what prints, or stands for what does, without anybody having handed a writer or a logger over.
var loud = []string{
	"os.Stdout", "os.Stderr", "slog.Default", "slog.SetDefault", "slog.Debug", "slog.Info", "slog.Warn", "slog.Error", "slog.Log",
	"slog.DebugContext", "slog.InfoContext", "slog.WarnContext", "slog.ErrorContext", "slog.LogAttrs",
	"fmt.Print", "fmt.Printf", "fmt.Println", "log.*",
	"os.WriteFile", "os.Create", // they wait where the path is a pipe: internal/regular does not
}

// asked are the places where the user has asked for it.
var asked = map[string]string{
	"loop/signal.go: log.Print":               "Exit is the end of a program, and prints its error",
	"flaxlike/verbose.go: os.Stderr":          "the writer that Fit's Output stands for, unless the run is Silent",
	"internal/golden/golden.go: os.WriteFile": "a test that is run with -write-golden",
}

// Silence unless asked: no library package prints, or takes the default logger.
func TestR26_librariesAreSilent(t *testing.T) {
	const root = "../.."
	files := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		files++
		for _, found := range namedIn(file) {
			if _, ok := asked[name+": "+found]; !ok {
				t.Errorf("%s names %s: take a writer or a logger from the user, or return an error (a file: internal/regular)", name, found)
			}
		}
		return nil
	}))
	require.Greater(t, files, 200)
	t.Logf("R26: %d files of libraries: none prints unasked", files)
}

// namedIn are the loud names that a file has.
func namedIn(file *ast.File) (found []string) {
	packages := map[string]string{} // by the name in the file
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		if slices.Contains([]string{"os", "fmt", "log", "log/slog"}, path) {
			packages[name] = path[strings.LastIndex(path, "/")+1:]
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && packages[x.Name] != "" {
				name := packages[x.Name] + "." + n.Sel.Name
				if slices.Contains(loud, name) || slices.Contains(loud, packages[x.Name]+".*") {
					found = append(found, name)
				}
			}
		case *ast.CallExpr:
			if x, ok := n.Fun.(*ast.Ident); ok && (x.Name == "print" || x.Name == "println") {
				found = append(found, x.Name)
			}
		}
		return true
	})
	return found
}

// The look at files finds what it is for.
func TestR26_theLookFindsWhatPrints(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import ("fmt"; "os"; "log"; l "log/slog")
func f() { fmt.Println(1); fmt.Sprint(2); log.Print(3); l.Default(); println(4); l.New(nil); _ = os.Stderr; _ = os.Stdin }`, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"fmt.Println", "log.Print", "slog.Default", "println", "os.Stderr"}, namedIn(file))
}
