package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// names are those of one package: "Loop", "Loop.Run", "Result.State".
type packageNames map[string]bool

func (n packageNames) add(file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				n[d.Name.Name] = true
				continue
			}
			n[receiverName(d.Recv.List[0].Type)+"."+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						n[name.Name] = true
					}
				case *ast.TypeSpec:
					n[s.Name.Name] = true
					n.members(s.Name.Name, s.Type)
				}
			}
		}
	}
}

func (n packageNames) members(of string, is ast.Expr) {
	var list *ast.FieldList
	switch is := is.(type) {
	case *ast.StructType:
		list = is.Fields
	case *ast.InterfaceType:
		list = is.Methods
	default:
		n[of+".*"] = true // it has the members of another type
		return
	}
	for _, f := range list.List {
		if len(f.Names) == 0 { // what is embedded may have the member
			n[of+".*"] = true
		}
		for _, name := range f.Names {
			n[of+"."+name.Name] = true
		}
	}
}

func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// has reports whether there is a name, or a member of one.
func (n packageNames) has(name string) bool {
	of, member, isMember := strings.Cut(name, ".")
	return n[name] || isMember && n[of+".*"] && member != ""
}

// link matches a name in brackets in a doc comment, with or without star, package and member.
var link = regexp.MustCompile(`\[\*?((?:[a-z][a-z0-9]*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// deadLinks returns the bracketed names in a file's doc comments that exist neither in its package nor in the others.
func deadLinks(file *ast.File, own packageNames, all map[string]packageNames) (dead []string) {
	for _, group := range file.Comments {
		text := group.Text()
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") { // code, or a list
				continue
			}
			for _, m := range link.FindAllStringSubmatchIndex(line, -1) {
				name := line[m[2]:m[3]]
				if after := line[m[1]:]; strings.HasPrefix(after, "(") || strings.HasPrefix(after, ":") || strings.Contains(text, "["+name+"]: ") {
					continue // a link with an address
				}
				if own.has(name) || strings.ToUpper(name) == name && len(name) > 1 { // a word in capitals, such as a file's format
					continue
				}
				pkg, rest, qualified := strings.Cut(name, ".")
				if names, ok := all[pkg]; qualified && (ok && names.has(rest) || !ok && strings.ToLower(pkg) == pkg) {
					continue // of another package, or one that is not lazo's
				}
				dead = append(dead, name)
			}
		}
	}
	return dead
}

// A name in brackets in a comment exists.
func TestLinksInComments(t *testing.T) {
	parse := func(text string) *ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", text, parser.ParseComments)
		require.NoError(t, err)
		return f
	}
	f := parse("package x\n\n// A is as [B], [A.Run], [y.C], [z.Other], [D](an address), [Gone], [A.Gone], [y.Gone] and [*Gone].\ntype A struct{}\n\n// B is.\nfunc B() {}\n\nfunc (A) Run() {}\n")
	own := packageNames{}
	own.add(f)
	require.Equal(t, []string{"Gone", "A.Gone", "y.Gone", "Gone"}, deadLinks(f, own, map[string]packageNames{"x": own, "y": {"C": true}}))

	type source struct {
		path string
		file *ast.File
	}
	folders, all := map[string][]source{}, map[string]packageNames{}
	byFolder := map[string]packageNames{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2) {
			return skipped(err)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, pkg := filepath.Dir(path), strings.TrimSuffix(file.Name.Name, "_test")
		if byFolder[folder] == nil {
			byFolder[folder] = packageNames{}
		}
		byFolder[folder].add(file)
		if pkg != "main" && !strings.HasSuffix(path, "_test.go") {
			if all[pkg] == nil {
				all[pkg] = packageNames{}
			}
			all[pkg].add(file)
		}
		folders[folder] = append(folders[folder], source{path, file})
		return nil
	}))
	files := 0
	for folder, sources := range folders {
		for _, s := range sources {
			files++
			for _, name := range deadLinks(s.file, byFolder[folder], all) {
				t.Errorf("%s: the comment names [%s], which does not exist", s.path, name)
			}
		}
	}
	require.Greater(t, files, 1000)
}
