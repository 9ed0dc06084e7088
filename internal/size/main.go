// Size prints, for each package, files, lines of code and of tests, exported names and words of comments outside tests,
// next to the budget: `make size`. -write prints the budget of the present sizes.
//
// Exported names are those of `go doc -all`, with methods of exported types and fields of exported structs.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

type size struct {
	files, code, tests, names, words int
}

func (s *size) add(o size) {
	s.files, s.code, s.tests, s.names, s.words = s.files+o.files, s.code+o.code, s.tests+o.tests, s.names+o.names, s.words+o.words
}

//go:embed budget.txt
var budgetText string

func budgetOf(text string) (map[string]size, error) {
	budget := map[string]size{}
	for line := range strings.Lines(text) {
		var s size
		var folder string
		if _, err := fmt.Sscanf(line, "%d %d %d %s", &s.code, &s.names, &s.words, &folder); err != nil {
			return nil, fmt.Errorf("budget: %q: %w: expected lines, names, words and a folder", line, err)
		}
		budget[folder] = s
	}
	return budget, nil
}

func budgetFor(sizes map[string]size) string {
	var b strings.Builder
	up := func(n, step int) int { return (n + step - 1) / step * step }
	for _, folder := range slices.Sorted(maps.Keys(sizes)) {
		if s := sizes[folder]; s.code > 0 {
			fmt.Fprintf(&b, "%d %d %d %s\n", up(s.code, 50), s.names, up(s.words, 100), folder)
		}
	}
	return b.String()
}

func over(sizes, budget map[string]size) (all []string) {
	for _, folder := range slices.Sorted(maps.Keys(sizes)) {
		s, most := sizes[folder], budget[folder]
		for _, row := range []struct {
			what    string
			n, most int
		}{{"lines of code", s.code, most.code}, {"exported names", s.names, most.names}, {"words of comments", s.words, most.words}} {
			if row.n > row.most {
				all = append(all, fmt.Sprintf("%s has %d %s, its budget is %d", folder, row.n, row.what, row.most))
			}
		}
	}
	return all
}

func main() {
	log.SetFlags(0)
	write := flag.Bool("write", false, "print a budget of the present sizes, for internal/size/budget.txt")
	flag.Parse()
	sizes, err := measure(".")
	if err != nil {
		log.Fatal("size: ", err)
	}
	if *write {
		fmt.Print(budgetFor(sizes))
		return
	}
	budget, err := budgetOf(budgetText)
	if err != nil {
		log.Fatal("size: ", err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\ttests\tcode\tbudget\texported\tbudget\twords\tbudget\t  package")
	var all, most size
	for _, folder := range slices.Sorted(maps.Keys(sizes)) {
		s, b := sizes[folder], budget[folder]
		all.add(s)
		most.add(b)
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", s.files, s.tests, s.code, b.code, s.names, b.names, s.words, b.words, folder)
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t  all\n", all.files, all.tests, all.code, most.code, all.names, most.names, all.words, most.words)
	if err := w.Flush(); err != nil {
		log.Fatal("size: ", err)
	}
	for _, line := range over(sizes, budget) {
		fmt.Println(line)
	}
}

// measure skips testdata and hidden folders.
func measure(root string) (map[string]size, error) {
	sizes := map[string]size{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		s := sizes[folder]
		if strings.HasSuffix(path, "_test.go") {
			s.tests += lines(text)
		} else {
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			s.add(size{files: 1, code: lines(text), names: exported(file), words: words(file)})
		}
		sizes[folder] = s
		return nil
	})
	return sizes, err
}

// The token may be within a string, not a comment.
func lines(text []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	n, last := 0, 0
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return n
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(at)
		end := first + strings.Count(literal, "\n")
		n += end - max(first-1, last)
		last = max(last, end)
	}
}

func words(file *ast.File) (n int) {
	for _, c := range file.Comments {
		n += len(strings.Fields(c.Text()))
	}
	return n
}

func exported(file *ast.File) (n int) {
	if file.Name.Name == "main" {
		return 0
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				n++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						if name.IsExported() {
							n++
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						n += 1 + members(spec.Type)
					}
				}
			}
		}
	}
	return n
}

func receiver(t ast.Expr) string {
	for {
		switch of := t.(type) {
		case *ast.StarExpr:
			t = of.X
		case *ast.IndexExpr:
			t = of.X
		case *ast.IndexListExpr:
			t = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

func members(t ast.Expr) (n int) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return 0
	}
	for _, f := range list.List {
		for _, name := range f.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}
