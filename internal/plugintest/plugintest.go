// Package plugintest opens plugins for tests, and builds the programs that tests start. `make setup` installs the CPU
// plugin; without it the tests fail, none skips.
package plugintest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/xla"
)

// CPU opens the CPU plugin, until the end of the test. Its compiled programs are kept in the folder lazo/tests of the
// user's cache, where later tests find them, those of other packages and of the race detector's run too: to compile is
// most of what the tests of models cost. A test that counts or times compilations, or looks at their memory, takes
// [Uncached].
func CPU(t testing.TB, options ...xla.Option) *xla.Runtime {
	t.Helper()
	kept, err := Kept()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, xla.CPU, append([]xla.Option{kept}, options...)...)
}

// Kept is the option that makes [CPU] of [Uncached], for examples, which have no test to hand over.
func Kept() (xla.Option, error) {
	dir, err := folder()
	// The cache's own limit has room for all programs of a check. With less, those that are compiled in the same order
	// each time throw each other out.
	return xla.CompileCache(dir, 0), err
}

func folder() (dir string, err error) {
	cache, err := owners.Cache()
	if err != nil {
		return "", fmt.Errorf("where tests keep compiled programs: %w", err)
	}
	return filepath.Join(cache, "lazo", "tests"), nil
}

// Fake compiles the fake plugin of package pjrt's tests, and gives its path: it describes machines "fake:1" to
// "fake:8", and compiles any StableHLO for them, to nothing.
func Fake(t testing.TB) (path string) {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/lazo-ml/lazo").Output() // which may be another's, as of dist/etcd
	if err != nil {
		t.Fatalf("where is the module: %v", err)
	}
	compiler, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatalf("which is the compiler: %v", err)
	}
	source := filepath.Join(strings.TrimSpace(string(module)), "xla", "pjrt", "testdata", "fake.c")
	path = filepath.Join(t.TempDir(), "fake.so")
	build := exec.CommandContext(t.Context(), strings.TrimSpace(string(compiler)), "-std=gnu11", "-pthread", "-shared", "-fPIC", "-o", path, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, out)
	}
	return path
}

// Described opens a machine of n devices that the fake plugin describes: values have shapes and no numbers.
func Described(t testing.TB, n int, options ...xla.Option) *xla.Runtime {
	t.Helper()
	r, err := xla.OpenTopology(t.Context(), Fake(t), fmt.Sprintf("fake:%d", n), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the described machine: %v", err)
		}
	})
	return r
}

// Program builds the program of a source folder, and gives the path of the executable, which is there until the end of
// the test. What it compiles is kept where [CPU] keeps it.
func Program(t testing.TB, source string) (path string) {
	t.Helper()
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	return program(t, source, "-X 'github.com/lazo-ml/lazo/xla.linkedCache="+dir+"'")
}

// UncachedProgram is [Program] without what earlier runs compiled: the executable compiles each program anew.
func UncachedProgram(t testing.TB, source string) (path string) {
	t.Helper()
	return program(t, source, "")
}

// program has go run copy what it built: unlike go build, it keeps linked programs for the next time.
func program(t testing.TB, source, flags string) (path string) {
	t.Helper()
	full, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), filepath.Base(full))
	build := exec.CommandContext(t.Context(), "go", "run", "-ldflags", flags, "-exec", "cp", full, path)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, out)
	}
	return path
}

// Devices opens the CPU plugin with n devices, as [CPU] does.
func Devices(t testing.TB, n int, options ...xla.Option) *xla.Runtime {
	t.Helper()
	return CPU(t, append([]xla.Option{xla.ClientOption("cpu_device_count", n)}, options...)...)
}

// Uncached opens the CPU plugin, which compiles each program anew.
func Uncached(t testing.TB, options ...xla.Option) *xla.Runtime {
	t.Helper()
	return open(t, xla.CPU, options...)
}

// Go opens GoMLX's backend in plain Go, until the end of the test.
func Go(t testing.TB, options ...xla.Option) *xla.Runtime {
	t.Helper()
	return open(t, xla.Go, options...)
}

// Platforms open what a backend's tests run on.
var Platforms = map[string]func(t testing.TB, options ...xla.Option) *xla.Runtime{xla.CPU: CPU, xla.Go: Go}

func open(t testing.TB, plugin string, options ...xla.Option) *xla.Runtime {
	t.Helper()
	r, err := xla.Open(t.Context(), plugin, options...)
	if err != nil {
		t.Fatalf("these tests need the plugin, which make setup installs: %v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
	})
	return r
}
