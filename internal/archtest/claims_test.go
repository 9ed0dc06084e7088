package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// claims are what packages say of what they know: no package whose import path matches is among those that they need,
// near or far.
var claims = []struct{ pkg, words, without string }{
	{"loop", "It knows nothing of models or devices", `gomlx|lazo/[^i]`},
	{"metrics", "", `lazo/(managed|loop|data|strategies|xla)`},
	{"losses", "", `lazo/(managed|loop|data|strategies|xla)`},
	{"data", "", `gomlx|lazo/[^i]`},
	{"optim", "", `lazo/(managed|loop|data|strategies|xla)`},
	{"checkpoint", "The package knows nothing about models", `gomlx|lazo/(train|managed|xla|data)`},
	{"safetensors", "", `gomlx|lazo/[^i]`},
	{"strategies", "It knows nothing of parameters, optimizers or metrics", `lazo/(managed|optim|metrics)|gomlx/ml/`},
	{"xla/hlo", "The package knows nothing of PJRT", `lazo/xla/pjrt`},
	{"xla/install", "", `lazo/xla/pjrt`},
	{"internal/dtype", "It imports nothing", `.`},
	{"internal/regular", "", `lazo/loop`},
	{"callbacks", "", `gomlx|lazo/(managed|xla|data)`},
	{"callbacks/tensorboard", "", `gomlx|lazo/(managed|xla|data)`},
	{"text", "The package needs nothing but the standard library", `\.|lazo/`},
	{"train", "", `gomlx|lazo/[^il]`},
}

func TestClaims(t *testing.T) {
	for _, c := range claims {
		require.Contains(t, strings.Join(strings.Fields(packageDoc(t, c.pkg)), " "), c.words, "%s: the claim is gone, so take its row away or reword it", c.pkg)
		require.Empty(t, needed(t, c.pkg, c.without), "%s needs what it says that it knows nothing of", c.pkg)
	}
	require.NotEmpty(t, needed(t, "managed", `lazo/xla/pjrt`), "the look finds what is there")
	require.NotEmpty(t, needed(t, "checkpoint", `lazo/loop`))
}

// The packages whose tests `make quick` runs need no plugin.
func TestQuickNeedsNoPlugin(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^PLAIN = ((?:.*\\\n)*.*)$`).FindSubmatch(text)
	require.NotNil(t, list)
	packages := strings.Fields(strings.ReplaceAll(string(list[1]), "\\", ""))
	require.Greater(t, len(packages), 10)
	for _, p := range packages {
		if p == "./internal/archtest" || p == "./internal/dtype" {
			continue // they look at types and numbers of the binding, and open nothing
		}
		require.Empty(t, needed(t, p, `lazo/xla/pjrt$`, "-test"), "the tests of %s", p)
	}
	require.NotEmpty(t, needed(t, "managed", `lazo/xla/pjrt$`, "-test"))
}

// needed are the packages that a package needs, near or far, itself left out, whose import paths match.
func needed(t *testing.T, name, pattern string, flags ...string) (found []string) {
	t.Helper()
	name = strings.TrimPrefix(name, "./")
	cmd := exec.Command("go", append(append([]string{"list", "-deps"}, flags...), "./"+name)...)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	matches := regexp.MustCompile(pattern)
	for _, p := range strings.Fields(string(out)) {
		if p != module+name && matches.MatchString(strings.TrimPrefix(p, "github.com/lazo-ml/")) {
			found = append(found, p)
		}
	}
	return found
}

func packageDoc(t *testing.T, name string) (doc string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, name, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		if !strings.HasSuffix(path, "_test.go") {
			doc += file.Doc.Text()
		}
	}
	return doc
}

// Every GoMLX name that these packages show is an alias in their gomlx.go, as that file says.
func TestGoMLXNamesAreAliases(t *testing.T) {
	looked := 0
	for _, name := range []string{"managed", "metrics"} {
		files, err := filepath.Glob(filepath.Join(root, name, "*.go"))
		require.NoError(t, err)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "gomlx.go" {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			looked++
			for _, shown := range shownOfGoMLX(file) {
				t.Errorf("%s/%s shows %s: make it an alias in gomlx.go", name, filepath.Base(path), shown)
			}
		}
	}
	require.Greater(t, looked, 40)
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import ("github.com/gomlx/gomlx/core/graph"; "github.com/gomlx/compute/dtypes"; "fmt")
type T struct { Shown *graph.Node; hidden graph.Graph; S fmt.Stringer }
type u struct{}
func F(n Node) dtypes.DType { return graph.X }
func (u) G() *graph.Node { return nil }
func (*T) H(x []*graph.Node) {}
func k() *graph.Node { return nil }
var V graph.Graph`, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"graph.Node in T", "dtypes.DType in F", "graph.Node in H", "graph.Graph in V"}, shownOfGoMLX(file))
}

// shownOfGoMLX are the names of GoMLX's packages in what a file declares for others.
func shownOfGoMLX(file *ast.File) (shown []string) {
	packages := imported(file)
	look := func(in string, types ...ast.Node) {
		for _, of := range types {
			ast.Inspect(of, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && strings.HasPrefix(packages[x.Name], "github.com/gomlx/") {
						shown = append(shown, x.Name+"."+s.Sel.Name+" in "+in)
					}
				}
				return true
			})
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if exported(d) {
				look(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if body, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() {
						for _, f := range body.Fields.List {
							if len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported) {
								look(s.Name.Name, f.Type)
							}
						}
					} else if s.Name.IsExported() {
						look(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					if s.Type != nil && slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
						look(s.Names[0].Name, s.Type)
					}
				}
			}
		}
	}
	return shown
}
