package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// others are further packages that documents name. If two have one name, either matches.
var others = []string{
	"github.com/gomlx/compute", "github.com/gomlx/compute/dtypes", "github.com/gomlx/compute/shapes",
	"github.com/gomlx/gomlx/core/graph", "github.com/gomlx/gomlx/core/tensors", "github.com/gomlx/gomlx/ml/model", "github.com/gomlx/gomlx/ml/model/initializer",
	"github.com/gomlx/gomlx/ml/layers", "github.com/gomlx/gomlx/ml/layers/activation", "github.com/gomlx/gomlx/ml/layers/attention",
	"github.com/gomlx/gomlx/ml/layers/lstm", "github.com/gomlx/gomlx/ml/layers/norm", "github.com/gomlx/gomlx/ml/layers/regularizer",
	"github.com/gomlx/gomlx/ml/train", "github.com/gomlx/gomlx/ml/train/loss", "github.com/gomlx/gomlx/ml/train/metric", "github.com/gomlx/gomlx/ml/train/optimizer",
	"github.com/janpfeifer/must", "context", "errors", "io", "io/fs", "iter", "log/slog", "math", "os", "slices", "time",
}

// values are variables that documents use without declaring them, with their types.
var values = map[string]string{
	"model": "flaxlike.Model", "state": "managed.State", "history": "loop.History", "result": "loop.Result",
	"set": "data.Set", "b": "managed.Builder", "turn": "loop.Turn", "report": "loop.Report", "scope": "model.Scope",
}

// foreign are prefixes of Python's names. The first cell of a table row has the other library's names and is not
// checked.
var foreign = map[string]bool{"keras": true, "torch": true, "tf": true, "jax": true, "optax": true, "flax": true, "nnx": true}

var (
	span     = regexp.MustCompile("`([^`]+)`")
	quoted   = regexp.MustCompile(`"[^"]*"`)
	selector = regexp.MustCompile(`(?:^|[^\w.])([A-Za-z_]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
)

// A pkg.Name, pkg.Type.Member or Type.Member in backticks in a document exists.
func TestNames(t *testing.T) {
	users, all := exported(t, false), exported(t, true)
	paths, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.Greater(t, len(paths), 10)
	others := []string{"../DESIGN.md", "../CONTRIBUTING.md"}
	for _, folder := range []string{"decisions", "guide", "maintain"} {
		found, err := filepath.Glob(folder + "/*.md")
		require.NoError(t, err)
		require.Greater(t, len(found), 5)
		others = append(others, found...)
	}
	for _, path := range slices.Concat(paths, others) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		known := all
		if strings.HasPrefix(path, "from-") || strings.HasPrefix(path, "guide/") { // for users, who cannot use internal packages
			known = users
		}
		fenced, checked := false, 0
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if fenced {
				continue // compiled, see TestSnippets
			}
			for _, name := range selectors(line) {
				checked++
				if !known.has(name) {
					t.Errorf("%s:%d: there is no %s", path, i+1, name)
				}
			}
		}
		if slices.Contains(paths, path) && path != "style.md" {
			require.Positive(t, checked, "%s names nothing", path)
		}
		t.Logf("%s: %d names", path, checked)
	}

	// lazo's names in the tables of other libraries' and of removed names
	checked := 0
	for _, cells := range append(rows(t, "maintain/parity.tsv", 4), rows(t, "renamed.tsv", 3)...) {
		if cells[0] == "figures" { // its names are lazo's
			cells[2] = cells[1] + " " + cells[2]
		}
		for _, name := range selectors(cells[2]) {
			checked++
			if !all.has(name) {
				t.Errorf("there is no %s: %s", name, cells)
			}
		}
	}
	require.Greater(t, checked, 600)
}

// Names that docs/renamed.tsv calls removed are removed. TestNames checks their replacements.
func TestRenamed(t *testing.T) {
	known := exported(t, false)
	stays := map[string]bool{"loop.From": true, "optim.Clip": true, "optim.Momentum": true, "strategies.CheckFinite": true, "train.Test": true, "train.TestOf": true} // of another form
	removed := 0
	for _, cells := range rows(t, "renamed.tsv", 3) {
		if !strings.HasPrefix(cells[1], "`") {
			continue // such as "a method of `loop.Type`", which stays
		}
		for _, name := range selectors(cells[1]) {
			removed++
			if !stays[name] && known.has(name) {
				t.Errorf("%s is there, and renamed.tsv calls it removed", name)
			}
		}
	}
	require.Greater(t, removed, 50)
	t.Logf("%d names are removed", removed)
}

// rows returns the rows of a table of n columns, without comments.
func rows(t *testing.T, path string, n int) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			require.Len(t, cells, n, "%s: %s", path, line)
			rows = append(rows, cells)
		}
	}
	return rows
}

// A missing name is reported.
func TestNamesTellApart(t *testing.T) {
	known := exported(t, false)
	for name, there := range map[string]bool{
		"callbacks.StopEarly": true, "loop.StopLate": false, "loop.Elapsed.Steps": true, "loop.Elapsed.Stops": false, "Fit.Epochs": true, "Fit.Periods": false,
		"model.Fit": true, "model.SetLearningRate": true, "model.Fits": false, "model.Scope.In": true, "model.Scope.Out": false, "lop.Steps": false,
		"loop.History.Collect": true, "flaxlike.Fit": true, "layers.Dense": true, "slog.Logger": true, "optim.Adamax": true,
		"parquet.Open": true, "parquet.Shut": false, "etcd.Embed": true, "shield.Do": false,
	} {
		require.Equal(t, there, known.has(name), name)
	}
	require.True(t, exported(t, true).has("shield.Do"))
	require.Equal(t, []string{"loop.KeepBest", "Fit.Epochs"}, selectors("| `there.Name` | a `loop.KeepBest(\"x.Y\", n)`, `Fit.Epochs`, in keras.Model |"))
}

// selectors returns the Go names in a line's backticks, without those of a table's first cell.
func selectors(line string) (names []string) {
	if strings.HasPrefix(line, "|") {
		_, line, _ = strings.Cut(line[1:], "|")
	}
	for _, code := range span.FindAllStringSubmatch(line, -1) {
		for _, m := range selector.FindAllStringSubmatch(quoted.ReplaceAllString(code[1], `""`), -1) {
			if name := m[1] + "." + m[2]; m[3] != "" {
				names = append(names, name+"."+m[3])
			} else if !foreign[m[1]] {
				names = append(names, name)
			}
		}
	}
	return names
}

// declarations has the exported names of packages: "loop.New", members such as "loop.Elapsed.Steps"; and for a type the
// types whose members it also has.
type declarations struct {
	names map[string]bool
	from  map[string][]string
}

// has looks a name up. A type without a package is looked up in all.
func (d declarations) has(name string) bool {
	owner, member, _ := strings.Cut(name, ".")
	if kind, isValue := values[owner]; isValue && d.has(kind+"."+member) {
		return true
	}
	if owner[0] >= 'A' && owner[0] <= 'Z' {
		for known := range d.names {
			if at := strings.IndexByte(known, '.'); known[at+1:] == owner && d.has(known+"."+member) {
				return true
			}
		}
		return false
	}
	if d.names[name] {
		return true
	}
	at := strings.LastIndexByte(name, '.')
	for _, kind := range d.from[name[:at]] {
		if d.has(kind + name[at:]) {
			return true
		}
	}
	return false
}

func exported(t *testing.T, internal bool) declarations {
	t.Helper()
	args := append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}", "github.com/lazo-ml/lazo/..."}, others...)
	out, err := exec.Command("go", args...).Output()
	require.NoError(t, err)
	all := declarations{map[string]bool{}, map[string][]string{}}
	modules := "github.com/lazo-ml/lazo/data/parquet ../data/parquet\ngithub.com/lazo-ml/lazo/dist/etcd ../dist/etcd\ngithub.com/lazo-ml/lazo/callbacks/prometheus ../callbacks/prometheus\ngithub.com/lazo-ml/lazo/callbacks/mlflow ../callbacks/mlflow\ngithub.com/lazo-ml/lazo/pretrained/onnx ../pretrained/onnx" // of their own
	for line := range strings.Lines(string(out) + modules) {
		importPath, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !internal && strings.Contains(importPath, "lazo/internal/") || strings.Contains(importPath, "lazo/examples/") {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, source := range sources {
			if strings.HasSuffix(source, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				all.add(path.Base(importPath), d)
			}
		}
	}
	return all
}

func (d declarations) add(pkg string, declared ast.Decl) {
	switch declared := declared.(type) {
	case *ast.FuncDecl:
		if declared.Recv == nil {
			d.names[pkg+"."+declared.Name.Name] = true
		} else {
			d.names[base(pkg, declared.Recv.List[0].Type)+"."+declared.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range declared.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					d.names[pkg+"."+name.Name] = true
				}
			case *ast.TypeSpec:
				d.addType(pkg+"."+spec.Name.Name, pkg, spec.Type)
			}
		}
	}
}

func (d declarations) addType(name, pkg string, of ast.Expr) {
	d.names[name] = true
	var fields []*ast.Field
	switch of := of.(type) {
	case *ast.StructType:
		fields = of.Fields.List
	case *ast.InterfaceType:
		fields = of.Methods.List
	default: // an alias, or a type like another one
		d.from[name] = append(d.from[name], base(pkg, of))
	}
	for _, f := range fields {
		for _, member := range f.Names {
			d.names[name+"."+member.Name] = true
		}
		if len(f.Names) == 0 {
			d.from[name] = append(d.from[name], base(pkg, f.Type))
		}
	}
}

// base is the name of a type without pointers and parameters.
func base(pkg string, of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return base(pkg, of.X)
	case *ast.IndexExpr:
		return base(pkg, of.X)
	case *ast.IndexListExpr:
		return base(pkg, of.X)
	case *ast.SelectorExpr:
		return base("", of.X) + "." + of.Sel.Name
	case *ast.Ident:
		if pkg == "" {
			return of.Name
		}
		return pkg + "." + of.Name
	}
	return "none.none"
}
