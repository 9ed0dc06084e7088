package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// S61: without cgo each package has files to build on each system, and their types fit; on Linux those of tests too.
// `make nightly` compiles them, which takes twenty times the CPU seconds.
func TestPackagesOfOtherSystems(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			found, wrong := typesOn(t, "../..", system)
			assert.Empty(t, wrong)
			for _, p := range packages(t) {
				require.Contains(t, found, p.ImportPath)
			}
		})
	}
}

func TestPackagesOfOtherSystems_tellsApart(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module toy\n\ngo 1.26\n",
		"toy.go":         "package toy\n\nvar wrong int = \"text\"\n",
		"toy_darwin.go":  "package toy\n\nfunc f() { g() }\n",
		"toy_windows.go": "package toy\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for system, errors := range map[string]int{"windows": 1, "darwin": 2} {
		found, wrong := typesOn(t, dir, system)
		require.Len(t, wrong, errors, system)
		require.Equal(t, []string{"toy"}, found)
	}
}

// typesOn checks the types of a module's packages, from sources: go vet would compile all dependencies first. It
// returns the packages and the errors.
func typesOn(t *testing.T, dir, system string) (found, wrong []string) {
	t.Helper()
	args := []string{"list", "-deps", "-json=ImportPath,ForTest,Dir,GoFiles,ImportMap,DepOnly"}
	if system == "linux" {
		args = append(args, "-test")
	}
	list := exec.Command("go", append(args, "./...")...)
	list.Dir, list.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
	out, err := list.Output()
	require.NoError(t, err)
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); { // dependencies come first
		var p struct {
			ImportPath, ForTest, Dir string
			GoFiles                  []string
			ImportMap                map[string]string
			DepOnly                  bool
		}
		require.NoError(t, d.Decode(&p))
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := tree(goFile{filepath.Join(p.Dir, name), p.DepOnly})
			require.NoError(t, err)
			files = append(files, file)
		}
		bindings := p.ForTest != "" && cgo[p.ForTest] != "" // their tests need cgo
		conf := types.Config{IgnoreFuncBodies: p.DepOnly || bindings, Sizes: types.SizesFor("gc", "amd64")}
		conf.Error = func(err error) {
			if !bindings {
				wrong = append(wrong, err.Error())
			}
		}
		conf.Importer = importerFunc(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if imported, ok := checked[path]; ok {
				return imported, nil
			}
			return nil, fmt.Errorf("%s is not listed before its importer", path)
		})
		path, _, _ := strings.Cut(p.ImportPath, " ")
		checked[p.ImportPath], _ = conf.Check(path, positions, files, nil)
		if !p.DepOnly && p.ForTest == "" {
			found = append(found, p.ImportPath)
		}
	}
	return found, wrong
}

// goFile is a file, whose functions a package that is only imported does not need.
type goFile struct {
	path    string
	outside bool
}

var (
	positions = token.NewFileSet()
	trees     sync.Map // of goFile to func() (*ast.File, error): each system has most of the files
)

func tree(of goFile) (*ast.File, error) {
	once, _ := trees.LoadOrStore(of, sync.OnceValues(func() (*ast.File, error) {
		file, err := parser.ParseFile(positions, of.path, nil, parser.SkipObjectResolution)
		if err == nil && of.outside {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
					f.Body = &ast.BlockStmt{}
				}
			}
		}
		return file, err
	}))
	return once.(func() (*ast.File, error))()
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
