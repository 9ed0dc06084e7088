package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// rule lists names that some files must not use.
type rule struct {
	// in selects the files of the rule.
	in func(path string, file *ast.File) bool
	// names are of other packages, with the import path ("os.Getenv", "log.*"), and built-in functions ("recover").
	names []string
	// but has the exceptions, "path: name" or "path", and why.
	but map[string]string
	// say is the advice in the message.
	say string
}

func libraries(path string, file *ast.File) bool {
	return !strings.HasSuffix(path, "_test.go") && file.Name.Name != "main"
}

// check applies the rule to all files, and checks that each exception is used. It returns the number of files.
func (r rule) check(t *testing.T) (files int) {
	used := map[string]bool{}
	eachFile(t, func(path string, file *ast.File) {
		if !r.in(path, file) {
			return
		}
		files++
		for _, name := range namedIn(file, r.names) {
			at := path + ": " + name
			if _, ok := r.but[at]; !ok {
				at = path
			}
			if _, ok := r.but[at]; !ok {
				t.Errorf("%s names %s: %s", path, name, r.say)
			}
			used[at] = true
		}
	})
	for at := range r.but {
		if !used[at] {
			t.Errorf("%s is excepted from the rule, and needs not be: take the row away", at)
		}
	}
	require.Greater(t, files, 100)
	return files
}

// finds is the control: the rule finds these names in a text.
func (r rule) finds(t *testing.T, text string, names ...string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", text, 0)
	require.NoError(t, err)
	require.Equal(t, names, namedIn(file, r.names))
}

// eachFile visits the Go files of the repository, also of nested modules.
func eachFile(t *testing.T, f func(path string, file *ast.File)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
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
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err == nil {
			f(filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))), file)
		}
		return err
	}))
}

// namedIn returns those of the names that a file uses.
func namedIn(file *ast.File, names []string) (found []string) {
	packages := imported(file)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && packages[x.Name] != "" {
				name := packages[x.Name] + "." + n.Sel.Name
				if slices.Contains(names, name) || slices.Contains(names, packages[x.Name]+".*") {
					found = append(found, name)
				}
			}
		case *ast.CallExpr:
			if x, ok := n.Fun.(*ast.Ident); ok && slices.Contains(names, x.Name) {
				found = append(found, x.Name)
			}
		}
		return true
	})
	return found
}

// imported returns the import paths of a file by local name.
func imported(file *ast.File) map[string]string {
	packages := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = path
	}
	return packages
}

// environment: arguments and options determine what a program does.
var environment = rule{
	in: libraries,
	names: []string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.Setenv", "os.Unsetenv", "os.Clearenv", "os.UserHomeDir", "os.UserCacheDir", "os.UserConfigDir",
		"syscall.Getenv", "syscall.Environ"},
	but: map[string]string{
		"internal/owners/home.go":       "the folders of plugins and of compiled programs, one place for all",
		"xla/search.go":                 "where plugins are looked for: PJRT_PLUGIN_LIBRARY_PATH",
		"xla/environment.go":            "what the plugin reads of it is part of the compile cache's key",
		"xla/open.go":                   "what a plugin needs is set before it is loaded, lazo plan asks for a step by LAZO_PLAN; glibc's own variables say how much heap is kept",
		"internal/mpi/library.go":       "which MPI the launcher is of, and where its library lies",
		"internal/mpi/binding_linux.go": "whether Open MPI's processes hand the processor over while they wait",
		"internal/aot/aot.go":           "the environment of the child that compiles",
		"internal/probe/probe.go":       "XLA_FLAGS, and the environment of the child that tries a plugin",
		"dist/join.go: os.Getenv":       "what launchers tell the processes that they start",
		"dist/inherited_unix.go":        "what package launch tells rank 0",
		"internal/plugintest/quick.go":  "the plugin's flags, for tests",
		"dist/launch/launch.go":         "the environment of the ranks that it starts",
		"internal/ranks/ranks.go":       "a test's process asks whether it is one of the ranks that it started",
		"callbacks/bar.go: os.Getenv":   "TERM: whether the line can be written over, NO_COLOR: whether it has colours",
	},
	say: "take an option from the user: only xla and programs read the environment",
}

func TestEnvironmentIsReadInFewPlaces(t *testing.T) {
	t.Logf("%d files", environment.check(t))
	environment.finds(t, `package x
import "os"
var a, b = os.Getenv("A"), os.Args
func f() { g(os.LookupEnv); os.Remove("b") }`, "os.Getenv", "os.LookupEnv")
}

// panics: there is one place of recovery per purpose, and panics of a caller's code are not lost.
var panics = rule{
	in:    func(path string, _ *ast.File) bool { return !strings.HasSuffix(path, "_test.go") },
	names: []string{"recover"},
	but: map[string]string{
		"internal/graphs/catch.go":  "graph functions, which say errors by panics: with the user's line",
		"internal/shield/shield.go": "what else is not ours, and a Goexit",
		"loop/run.go":               "the turn of a batch, inside of the source, which may recover",
		"loop/schedule.go":          "a function that says when something is due, for its name",
	},
	say: "call it by internal/shield, or by graphs.Catch if it builds a graph",
}

func TestPanicsAreRecoveredInFewPlaces(t *testing.T) {
	t.Logf("%d files", panics.check(t))
	panics.finds(t, `package x
func f() { defer func() { if v := recover(); v != nil { panic(v) } }() }`, "recover")
}

// sleeps: a test waits for an event, not for a time.
var sleeps = rule{
	in: func(path string, file *ast.File) bool {
		return strings.HasSuffix(path, "_test.go") && !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
			return i.Path.Value == `"testing/synctest"` // synctest's clock
		})
	},
	names: []string{"time.Sleep"},
	but: map[string]string{
		"loop/model_run_test.go":           "in the bubble of model_test.go",
		"callbacks/profile_wall_test.go":   "what waits is what the profile is to show",
		"callbacks/output_example_test.go": "an example of a slow tracker",
		"loop/signal_test.go":              "a signal at a random moment",
		"loop/signal_child_test.go":        "what the signal interrupts",
		"checkpoint/kill_test.go":          "a kill at a random moment",
		"examples/mnist/resume_test.go":    "a kill at a random moment",
		"internal/install/process_test.go": "a kill at a random moment",
		"internal/install/install_test.go": "a server that drips, against the limit of the whole",
		"internal/fetch/fetch_test.go":     "a server that drips, against the limit of the whole",
		"flaxlike/ends_test.go":            "a step that hangs",
		"flaxlike/model_test.go":           "the time for which others use a model beside its Fit",
		"managed/fault_sharing_test.go":    "the time for which others use a state beside a training",
		"internal/pjrt/object_test.go":     "the collector says to nobody when it is done",
	},
	say: "wait for a channel or a condition, or take testing/synctest",
}

func TestTestsDoNotSleep(t *testing.T) {
	t.Logf("%d files", sleeps.check(t))
	sleeps.finds(t, `package x
import "time"
func f() { time.Sleep(time.Second); <-time.After(1) }`, "time.Sleep")
}

// asks are the anonymous interfaces that type assertions may use.
var asks = map[string]string{
	"managed/rate.go: Float32":              "GoMLX's two types of 16 bits",
	"flaxlike/report/answers.go: Float32":   "GoMLX's two types of 16 bits",
	"checkpoint/run_failed.go: Unwrap":      "what errors.Join gives",
	"internal/gate/gate.go: Unwrap":         "what errors.Join gives",
	"internal/hlo/constant.go: ToStableHLO": "go-xla's constants",
}

// An interface in a type assertion or a type switch has a name, so that both sides can be found.
func TestNoHiddenChannels(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, method := range askedIn(file) {
			at := path + ": " + method
			if used[at] = true; asks[at] == "" {
				t.Errorf("%s asks a value for the method %s by an interface without a name: give it one where the method is declared", path, method)
			}
		}
	})
	for at := range asks {
		require.True(t, used[at], "%s: take the row away", at)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
func f(v any) { _, _ = v.(interface{ A() }); _ = v.(any); switch v.(type) { case interface{ B(); C() }, named: } }`, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"A", "B"}, askedIn(file))
}

// askedIn returns the first methods of the anonymous interfaces in type assertions.
func askedIn(file *ast.File) (methods []string) {
	note := func(e ast.Expr) {
		if i, ok := e.(*ast.InterfaceType); ok && len(i.Methods.List) > 0 && len(i.Methods.List[0].Names) > 0 {
			methods = append(methods, i.Methods.List[0].Names[0].Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			note(n.Type)
		case *ast.CaseClause:
			for _, e := range n.List {
				note(e)
			}
		}
		return true
	})
	return methods
}
