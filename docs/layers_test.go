package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The custom layer in layers.md imports what it uses, so that it can be copied.
func TestOwnLayerImportsWhatItUses(t *testing.T) {
	text, err := os.ReadFile("layers.md")
	require.NoError(t, err)
	before, behind, found := strings.Cut(string(text), "type scaledDense struct {")
	require.True(t, found)
	begin := before[strings.LastIndex(before, "```\n")+len("```\n"):]
	layer, _, found := strings.Cut(behind, "\n}\n\nm, err :=")
	require.True(t, found)
	file, err := parser.ParseFile(token.NewFileSet(), "", "package layers\n"+begin+"type scaledDense struct {"+layer+"\n}\n", 0)
	require.NoError(t, err)
	imported := map[string]bool{}
	for _, i := range file.Imports {
		imported[path.Base(strings.Trim(i.Path.Value, `"`))] = true
	}
	packages := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			if x, is := s.X.(*ast.Ident); is && x.Obj == nil {
				packages++
				require.True(t, imported[x.Name], "%s is used and not imported", x.Name)
			}
		}
		return true
	})
	require.Greater(t, packages, 4)
}
