// Package plugintest opens plugins for tests, and builds programs that tests start. Without the CPU plugin, which `make
// setup` installs, tests fail.
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

// CPU opens the CPU plugin until the test's end. Programs are cached in lazo/tests of the user's cache. Tests that
// count, time or measure compilations use [Uncached].
func CPU(t testing.TB, options ...xla.Option) *xla.Runtime {
	t.Helper()
	kept, err := Kept()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, xla.CPU, append([]xla.Option{kept}, options...)...)
}

// Kept returns the option by which [CPU] differs from [Uncached], for examples, which have no test.
func Kept() (xla.Option, error) {
	dir, err := folder()
	// A limit below a check's programs would evict each before its next use.
	return xla.CompileCache(dir, 0), err
}

func folder() (dir string, err error) {
	cache, err := owners.Cache()
	if err != nil {
		return "", fmt.Errorf("where tests keep compiled programs: %w", err)
	}
	return filepath.Join(cache, "lazo", "tests"), nil
}

// Fake compiles the fake plugin of package pjrt's tests and returns its path. It describes machines "fake:1" to
// "fake:8" and accepts any StableHLO.
func Fake(t testing.TB) (path string) {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/lazo-ml/lazo").Output()
	if err != nil {
		t.Fatalf("where is the module: %v", err)
	}
	compiler, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatalf("which is the compiler: %v", err)
	}
	source := filepath.Join(strings.TrimSpace(string(module)), "internal", "pjrt", "testdata", "fake.c")
	path = filepath.Join(t.TempDir(), "fake.so")
	build := exec.CommandContext(t.Context(), strings.TrimSpace(string(compiler)), "-std=gnu11", "-pthread", "-shared", "-fPIC", "-o", path, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, out)
	}
	return path
}

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

// Program builds a program from its folder, with [CPU]'s cache, and returns the executable's path, valid until the
// test's end.
func Program(t testing.TB, source string) (path string) {
	t.Helper()
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	return program(t, source, "-X 'github.com/lazo-ml/lazo/xla.linkedCache="+dir+"'")
}

func UncachedProgram(t testing.TB, source string) (path string) {
	t.Helper()
	return program(t, source, "")
}

// go run caches linked programs, unlike go build. Without DWARF (-w) a link takes half of the CPU seconds.
func program(t testing.TB, source, flags string) (path string) {
	t.Helper()
	full, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), filepath.Base(full))
	build := exec.CommandContext(t.Context(), "go", "run", "-ldflags", "-w "+flags, "-exec", "cp", full, path)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", source, err, out)
	}
	return path
}

func Devices(t testing.TB, n int, options ...xla.Option) *xla.Runtime {
	t.Helper()
	return CPU(t, append([]xla.Option{xla.ClientOption("cpu_device_count", n)}, options...)...)
}

func Uncached(t testing.TB, options ...xla.Option) *xla.Runtime {
	t.Helper()
	return open(t, xla.CPU, options...)
}

func Go(t testing.TB, options ...xla.Option) *xla.Runtime {
	t.Helper()
	return open(t, xla.Go, options...)
}

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
