// Package idle lets ranks of tests sleep where MPI yields the processor: a rank that waits would take a processor from
// other tests.
package idle

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const source = `#include <time.h>
int sched_yield(void) { struct timespec t = {0, 20000}; return nanosleep(&t, 0); }
`

// Environment returns variables for ranks, valid until the end of the test; none on systems other than Linux.
func Environment(t testing.TB) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	path := filepath.Join(t.TempDir(), "idle.so")
	compile(t, source, path, "-shared", "-fPIC")
	return []string{"LD_PRELOAD=" + path}
}

func compile(t testing.TB, source, path string, flags ...string) {
	t.Helper()
	compiler, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatalf("which is the compiler: %v", err)
	}
	cc := exec.CommandContext(t.Context(), strings.TrimSpace(string(compiler)), append(flags, "-x", "c", "-", "-o", path)...)
	cc.Stdin = strings.NewReader(source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", path, err, out)
	}
}
