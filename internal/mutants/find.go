package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type mutant struct {
	id         int
	pkg        *source
	file       string
	from, to   int
	line       int
	function   string
	kind       string
	change     string
	form       []piece
	tests      []*test
	missed     []string
	outcome    outcome
	by, remark string
}

// piece is text of a form, or a part of the source with other mutants.
type piece struct {
	text     string
	from, to int
}

// on is replaced by a call with the mutant's number.
const on = "\x00"

var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL, token.AND: token.OR, token.OR: token.AND,
	token.SHL: token.SHR, token.SHR: token.SHL,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
	token.INC: token.DEC, token.DEC: token.INC,
}

type finder struct {
	pkg   *source
	path  string
	stack []ast.Node
	found []*mutant
}

func find(s *source) (all []*mutant) {
	for _, name := range s.GoFiles {
		f := &finder{pkg: s, path: filepath.Join(s.Dir, name)}
		ast.Inspect(s.files[f.path], f.visit)
		all = append(all, f.found...)
	}
	return all
}

func (f *finder) visit(n ast.Node) bool {
	if n == nil {
		f.stack = f.stack[:len(f.stack)-1]
		return true
	}
	if f.passedOver(n) {
		return false
	}
	f.stack = append(f.stack, n)
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		f.condition(n)
	case *ast.BasicLit:
		f.number(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	}
	return true
}

// passedOver skips texts that nothing depends on, and statements without code.
func (f *finder) passedOver(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Recv != nil && n.Name.Name == "String" || n.Body == nil
	case *ast.GenDecl:
		return n.Tok != token.VAR
	case *ast.ArrayType, *ast.FuncType, *ast.StructType:
		return true
	case *ast.CallExpr:
		return f.logs(n)
	}
	return false
}

func (f *finder) logs(call *ast.CallExpr) bool {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	object := f.pkg.info.Uses[selector.Sel]
	return object != nil && object.Pkg() != nil && object.Pkg().Path() == "log/slog"
}

func (f *finder) parent() ast.Node { return f.stack[len(f.stack)-2] }

func (f *finder) add(n ast.Node, kind, change string, form ...any) {
	position := f.pkg.fset.Position(n.Pos())
	m := &mutant{pkg: f.pkg, file: f.path, from: position.Offset, to: f.pkg.fset.Position(n.End()).Offset, line: position.Line, kind: kind, change: change}
	for _, n := range f.stack {
		if function, is := n.(*ast.FuncDecl); is {
			m.function = function.Name.Name
		}
	}
	for _, part := range form {
		switch part := part.(type) {
		case string:
			m.form = append(m.form, piece{text: part})
		case ast.Node:
			m.form = append(m.form, piece{from: f.pkg.fset.Position(part.Pos()).Offset, to: f.pkg.fset.Position(part.End()).Offset})
		}
	}
	f.found = append(f.found, m)
}

func (f *finder) text(n ast.Node) string {
	text := string(f.pkg.texts[f.path][f.pkg.fset.Position(n.Pos()).Offset:f.pkg.fset.Position(n.End()).Offset])
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 70 {
		text = string(runes[:67]) + "…"
	}
	return text
}

func (f *finder) typeOf(t types.Type) string {
	if basic, is := t.(*types.Basic); t == nil || is && (basic.Info()&types.IsUntyped != 0 || basic.Kind() == types.Invalid) {
		return ""
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == f.pkg.ImportPath {
			return ""
		}
		return p.Name()
	})
}

func (f *finder) constant(e ast.Expr) bool { return f.pkg.info.Types[e].Value != nil }

func (f *finder) isNil(e ast.Expr) bool { return f.pkg.info.Types[e].IsNil() }

var errorType = types.Universe.Lookup("error").Type()

func (f *finder) binary(n *ast.BinaryExpr) {
	to, has := swapped[n.Op]
	if !has || f.constant(n) {
		return
	}
	change := fmt.Sprintf("%s: %s to %s", f.text(n), n.Op, to)
	switch n.Op {
	case token.NEQ:
		if f.isNil(n.Y) && types.Identical(f.pkg.info.TypeOf(n.X), errorType) {
			f.add(n, "error ignored", f.text(n)+": never", "(!"+on+" && (", n.X, " != nil))")
			return
		}
		fallthrough
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.LAND, token.LOR:
		f.add(n, "condition", change, "("+on+" && (", n.X, " "+to.String()+" ", n.Y, ") || !"+on+" && (", n.X, " "+n.Op.String()+" ", n.Y, "))")
	default:
		basic, is := f.pkg.info.TypeOf(n).Underlying().(*types.Basic)
		name := f.typeOf(f.pkg.info.TypeOf(n))
		if !is || basic.Info()&types.IsNumeric == 0 || name == "" || basic.Info()&types.IsInteger == 0 && (to == token.OR || to == token.AND) {
			return
		}
		f.add(n, "arithmetic", change, "func() "+name+" { if "+on+" { return ", n.X, " "+to.String()+" ", n.Y, " }; return ", n.X, " "+n.Op.String()+" ", n.Y, " }()")
	}
}

func (f *finder) condition(n *ast.IfStmt) {
	if binary, is := n.Cond.(*ast.BinaryExpr); is && swapped[binary.Op] != 0 {
		return
	}
	f.add(n.Cond, "condition", "if "+f.text(n.Cond)+": negated", "("+on+" != (", n.Cond, "))")
}

func (f *finder) number(n *ast.BasicLit) {
	if n.Kind != token.INT || len(n.Value) > 1 && n.Value[0] == '0' {
		return
	}
	switch parent := f.parent().(type) {
	case *ast.CaseClause, *ast.KeyValueExpr:
		return
	case *ast.ReturnStmt: // values returned with an error mean nothing
		last := parent.Results[len(parent.Results)-1]
		if types.Identical(f.pkg.info.TypeOf(last), errorType) && !f.isNil(last) {
			return
		}
	case *ast.CallExpr:
		if id, is := parent.Fun.(*ast.Ident); is && id.Name == "make" || f.constant(parent) {
			return
		}
	case ast.Expr:
		if f.constant(parent) {
			return
		}
	}
	value, err := strconv.ParseInt(n.Value, 10, 64)
	name := f.typeOf(f.pkg.info.TypeOf(n))
	if err != nil || name == "" {
		return
	}
	f.add(n, "constant", fmt.Sprintf("%s in %s: %d", n.Value, f.text(f.parent()), value+1),
		fmt.Sprintf("func() %s { if %s { return %d }; return %d }()", name, on, value+1, value))
}

func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, is := s.X.(*ast.CallExpr); is && f.logs(call) {
				continue
			}
			f.remove(s)
		case *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
			f.remove(s)
		case *ast.IncDecStmt:
			f.add(s, "arithmetic", fmt.Sprintf("%s: %s", f.text(s), swapped[s.Tok]), "if "+on+" { ", s.X, swapped[s.Tok].String()+" } else { ", s, " }")
		case *ast.AssignStmt:
			f.assignment(s)
		case *ast.ReturnStmt:
			f.returned(s)
		}
	}
}

func (f *finder) remove(s ast.Stmt) {
	f.add(s, "statement", f.text(s)+": removed", "if !"+on+" { ", s, " }")
}

func (f *finder) assignment(s *ast.AssignStmt) {
	if s.Tok == token.DEFINE {
		return
	}
	if id, is := s.Lhs[0].(*ast.Ident); is && id.Name == "_" && len(s.Lhs) == 1 {
		return
	}
	f.remove(s)
}

func (f *finder) returned(s *ast.ReturnStmt) {
	results := f.results()
	if results == nil || len(s.Results) == 0 {
		return
	}
	var names []string
	for v := range results.Variables() {
		name := f.typeOf(v.Type())
		if name == "" {
			return
		}
		names = append(names, "*new("+name+")")
	}
	if len(s.Results) != len(names) {
		f.add(s, "result", f.text(s)+": zero values", "if "+on+" { return "+strings.Join(names, ", ")+" }; ", s)
		return
	}
	at, value := 0, ""
	last := len(names) - 1
	switch first := s.Results[0]; {
	case types.Identical(results.At(last).Type(), errorType):
		if f.isNil(s.Results[last]) {
			if last == 0 {
				return
			}
			at, value = 0, names[0]
			break
		}
		at, value = last, "nil"
	case f.text(first) == "false":
		value = "true"
	default:
		value = names[0]
	}
	if f.isZero(s.Results[at]) && value != "true" {
		return
	}
	form := []any{"if " + on + " { return "}
	for i, result := range s.Results {
		if i > 0 {
			form = append(form, ", ")
		}
		if i == at {
			form = append(form, value)
		} else {
			form = append(form, result)
		}
	}
	f.add(s, "result", fmt.Sprintf("%s: result %d is %s", f.text(s), at+1, value), append(form, " }; ", s)...)
}

func (f *finder) isZero(e ast.Expr) bool {
	return f.isNil(e) || slices.Contains([]string{"0", `""`, "false"}, f.text(e)) || strings.HasSuffix(f.text(e), "{}")
}

func (f *finder) results() *types.Tuple {
	for _, n := range slices.Backward(f.stack) {
		switch n := n.(type) {
		case *ast.FuncLit:
			return f.pkg.info.TypeOf(n).(*types.Signature).Results()
		case *ast.FuncDecl:
			return f.pkg.info.Defs[n.Name].Type().(*types.Signature).Results()
		}
	}
	return nil
}
