package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A nil option is ignored; calling it would end the process. The test reads the source: a function that calls each of
// its options compares it with nil first.
func TestOptionsThatAreNilArePassedOver(t *testing.T) {
	loops := 0
	for _, p := range parsed(t) {
		for _, f := range p.functions {
			lists := optionLists(f.Type.Params)
			if f.Body == nil || len(lists) == 0 {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				r, ok := n.(*ast.RangeStmt)
				if !ok || !mentions(r.X, lists) {
					return true
				}
				option, ok := r.Value.(*ast.Ident)
				if !ok || !calls(r.Body, option.Name) {
					return true
				}
				loops++
				if !asksForNil(r.Body, option.Name) {
					t.Errorf("%s: %s calls options without asking whether they are nil", p.fset.Position(r.Pos()), f.Name.Name)
				}
				return true
			})
		}
	}
	require.Greater(t, loops, 8)
	t.Logf("%d places that call options", loops)
}

// optionLists returns the parameters that are lists of options.
func optionLists(fields *ast.FieldList) map[string]bool {
	lists := map[string]bool{}
	for _, field := range fields.List {
		var of ast.Expr
		switch e := field.Type.(type) {
		case *ast.Ellipsis:
			of = e.Elt
		case *ast.ArrayType:
			of = e.Elt
		default:
			continue
		}
		if strings.HasSuffix(types.ExprString(of), "Option") {
			for _, name := range field.Names {
				lists[name.Name] = true
			}
		}
	}
	return lists
}

func mentions(e ast.Expr, names map[string]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && names[id.Name]
		return true
	})
	return found
}

func calls(body ast.Node, name string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			of := c.Fun
			if method, ok := of.(*ast.SelectorExpr); ok {
				of = method.X
			}
			id, ok := of.(*ast.Ident)
			found = found || ok && id.Name == name
		}
		return true
	})
	return found
}

// asksForNil reports whether a name is compared with nil.
func asksForNil(body ast.Node, name string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.NEQ || b.Op == token.EQL) {
			found = found || types.ExprString(b.X) == name && types.ExprString(b.Y) == "nil"
		}
		return true
	})
	return found
}
