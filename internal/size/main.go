// Size prints the number of files, lines of code and of tests, and exported names of each package in a folder, for
// `make size`.
//
// Lines without code do not count. Exported names are those of `go doc -all`: functions, types, constants, variables,
// methods of exported types, and fields of exported structs.
package main

import (
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
	files, code, tests, names int
}

func (s *size) add(o size) {
	s.files, s.code, s.tests, s.names = s.files+o.files, s.code+o.code, s.tests+o.tests, s.names+o.names
}

func main() {
	log.SetFlags(0)
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	sizes, err := measure(root)
	if err != nil {
		log.Fatal("size: ", err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "files\tcode\ttests\texported\t  package")
	var all size
	for _, folder := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[folder]
		all.add(s)
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t  %s\n", s.files, s.code, s.tests, s.names, folder)
	}
	fmt.Fprintf(w, "%d\t%d\t%d\t%d\t  all\n", all.files, all.code, all.tests, all.names)
	if err := w.Flush(); err != nil {
		log.Fatal("size: ", err)
	}
}

// measure returns the size of each folder with Go files in root, except testdata and hidden folders.
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
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			s.add(size{files: 1, code: lines(text), names: exported(file)})
		}
		sizes[folder] = s
		return nil
	})
	return sizes, err
}

// lines counts lines with tokens other than comments, including all lines of a string.
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
