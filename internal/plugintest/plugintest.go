// Package plugintest opens plugins for tests. `make setup` installs the CPU plugin; without it the tests fail, none
// skips.
package plugintest

import (
	"fmt"
	"path/filepath"
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
	cache, err := owners.Cache()
	if err != nil {
		return nil, fmt.Errorf("where tests keep compiled programs: %w", err)
	}
	return xla.CompileCache(filepath.Join(cache, "lazo", "tests"), 256<<20), nil
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
