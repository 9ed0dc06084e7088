package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A doctor built without cgo does not call a good plugin damaged, and looks at the backend that such programs run on.
func TestDoctor_withoutCgo(t *testing.T) {
	if os.Getenv("LAZO_TEST_PORTABLE") == "" {
		t.Skip("make portable runs it, which builds without cgo")
	}
	binary := filepath.Join(t.TempDir(), "lazo")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", binary, ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	said, err = exec.CommandContext(t.Context(), binary, "doctor").CombinedOutput()
	require.NoError(t, err, string(said))
	require.Regexp(t, `(?s)digest +ok.*built without cgo.*devices +1.*result +ok`, string(said))
}
