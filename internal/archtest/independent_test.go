//lazo:norace
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// independent packages have no direct or indirect dependency whose import path matches.
var independent = map[string]string{
	"loop":                   `gomlx|lazo/[^i]`,
	"metrics":                `lazo/(managed|loop|data|strategies|xla)`,
	"nn/losses":              `lazo/(managed|loop|data|strategies)`,
	"data":                   `gomlx|lazo/[^i]`,
	"optim":                  `lazo/(managed|loop|data|strategies|xla)`,
	"checkpoint":             `gomlx|lazo/(train|managed|xla|data)`,
	"checkpoint/safetensors": `gomlx|lazo/[^i]`,
	"strategies":             `lazo/(managed|optim|metrics)|gomlx/ml/`,
	"internal/hlo":           `lazo/internal/pjrt`,
	"internal/install":       `lazo/internal/pjrt`,
	"internal/dtype":         `.`,
	"internal/regular":       `lazo/loop`,
	"callbacks":              `gomlx|lazo/(managed|xla|data)`,
	"callbacks/tensorboard":  `gomlx|lazo/(managed|xla|data)`,
	"data/text":              `gomlx|lazo/[^i]`,
	"train":                  `gomlx|lazo/[^il]`,
}

func TestIndependent(t *testing.T) {
	for name, without := range independent {
		require.Empty(t, needed(t, name, without), "%s depends on what it must not", name)
	}
	require.NotEmpty(t, needed(t, "managed", `lazo/internal/pjrt`), "the look finds what is there")
	require.NotEmpty(t, needed(t, "checkpoint", `lazo/loop`))
}

// needed returns the direct and indirect dependencies of a package whose import paths match.
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

// Signatures use GoMLX's own type names: no package has a second name for one.
func TestGoMLXTypesHaveOneName(t *testing.T) {
	looked := 0
	eachFile(t, func(path string, file *ast.File) {
		looked++
		for _, second := range secondNames(file) {
			if !strings.Contains(path, "internal/") {
				t.Errorf("%s: %s is another name of a type of GoMLX: use that", path, second)
			}
		}
	})
	require.Greater(t, looked, 100)
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import ("github.com/gomlx/gomlx/core/graph"; "fmt")
type ( Node = graph.Node; own graph.Graph; node = graph.Node; S = fmt.Stringer )`, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"Node"}, secondNames(file))
}

// secondNames returns the exported aliases of GoMLX's types in a file.
func secondNames(file *ast.File) (names []string) {
	packages := imported(file)
	for _, d := range file.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range d.Specs {
			if s, ok := s.(*ast.TypeSpec); ok && s.Assign.IsValid() && s.Name.IsExported() {
				if of, ok := s.Type.(*ast.SelectorExpr); ok {
					if x, ok := of.X.(*ast.Ident); ok && strings.HasPrefix(packages[x.Name], "github.com/gomlx/") {
						names = append(names, s.Name.Name)
					}
				}
			}
		}
	}
	return names
}
