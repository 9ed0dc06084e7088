package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type source struct {
	Name, Dir, ImportPath string
	GoFiles, CgoFiles     []string
	Export                string
	DepOnly               bool

	fset  *token.FileSet
	files map[string]*ast.File
	texts map[string][]byte
	info  *types.Info
	types types.Importer
}

func listed(dir string, patterns []string) (found []*source, exports map[string]string, err error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=Name,Dir,ImportPath,GoFiles,CgoFiles,Export,DepOnly"}, patterns...)...)
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	exports = map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		s := &source{}
		if err := d.Decode(s); err != nil {
			return nil, nil, err
		}
		exports[s.ImportPath] = s.Export
		if !s.DepOnly {
			found = append(found, s)
		}
	}
	return found, exports, nil
}

func load(dir string, patterns []string) ([]*source, error) {
	found, exports, err := listed(dir, patterns)
	if err != nil {
		return nil, err
	}
	_, helpers, err := listed(dir, []string{"os", "strconv", "sync/atomic"}) // the helper's imports
	if err != nil {
		return nil, err
	}
	maps.Copy(exports, helpers)
	for _, s := range found {
		s.fset = token.NewFileSet()
		s.types = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
		s.texts = map[string][]byte{}
		for _, name := range s.GoFiles {
			path := filepath.Join(s.Dir, name)
			if s.texts[path], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		s.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		if s.files, err = s.check(s.texts, s.info); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (s *source) check(texts map[string][]byte, info *types.Info) (map[string]*ast.File, error) {
	files, all := map[string]*ast.File{}, []*ast.File(nil)
	for path, text := range texts {
		f, err := parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files[path], all = f, append(all, f)
	}
	_, err := (&types.Config{Importer: s.types}).Check(s.ImportPath, s.fset, all, info)
	return files, err
}
