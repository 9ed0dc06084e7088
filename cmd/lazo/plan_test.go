package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// A step that does not fit gets its table and exit status 1, also among others that fit.
func TestPlan_unfit(t *testing.T) {
	fake := plugintest.Fake(t)
	dir, _ := exported(t)
	large := filepath.Join(t.TempDir(), "large.mlir")
	require.NoError(t, os.WriteFile(large, []byte(strings.ReplaceAll(sum, "256", "1099511627776")), 0o600))
	got := run(t, "plan", "--plugin="+fake, "--for=v5e:2x2", dir)
	assert.Equal(t, 0, got.code, got.stderr)
	assert.Contains(t, got.stdout, "4 devices")
	for _, flags := range [][]string{{}, {"--json"}, {"--devices=1"}} {
		got := run(t, append(append([]string{"plan", "--plugin=" + fake, "--for=v5e:1x1"}, flags...), large)...)
		assert.Equal(t, 1, got.code, "%v", flags)
		assert.NotEmpty(t, got.stdout, "%v", flags)
		assert.Empty(t, got.stderr, "%v", flags)
	}
	got = run(t, "plan", "--plugin="+fake, "--for=v5e:1x1", large)
	assert.Contains(t, got.stdout, "does not fit")
	assert.Contains(t, got.stdout, "1008.25 GiB")
}

// The tests of xla/plan check the figures of lazo plan. No test has the compilers of TPUs and GPUs. Their figures are
// in docs/maintain/plan.md.
func TestPlanMistakes(t *testing.T) {
	dir, file := exported(t)
	root := t.TempDir()
	library := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(library, "go.mod"), []byte("module library\n\ngo 1.24\n"), 0o600))
	source := filepath.Join(library, "library.go")
	require.NoError(t, os.WriteFile(source, []byte("package library\n"), 0o600))
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	for _, row := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no target", []string{dir}, 2, "--for"},
		{"no path", []string{"--for=v5e:2x2"}, 2, "<path>"},
		{"an unknown machine", []string{"--for=k80:8", dir}, 1, "the kinds are v4, v5e, v5p, v6e, tpu7x, a100, h100\n"},
		{"a number of chips", []string{"--for=v5e:16", dir}, 1, `as "v5e:4x4"`},
		{"a path that is not there", []string{"--for=v5e:2x2", "/none"}, 1, "/none: no such file"},
		{"a folder that was not exported", []string{"--for=v5e:2x2", root}, 1, "it has no manifest.json"},
		{"another size of batch", []string{"--for=v5e:2x2", "--batch=7", dir}, 1, "no program for a batch of 7"},
		{"a size of a file", []string{"--for=v5e:2x2", "--batch=7", file}, 1, "a file has one program"},
		{"a negative batch", []string{"--for=v5e:2x2", "--batch=-7", dir}, 1, "expected a number of examples"},
		{"no devices", []string{"--for=v5e:2x2", "--devices=0", dir}, 1, "0 devices, expected 1"},
		{"flags behind a folder", []string{dir, "--for=v5e:2x2", "--json"}, 2, "missing flags: --for=TARGET,...; arguments after " + dir + " go to the Go program, including --for, --json"},
		{"a flag behind a folder", []string{"--for=v5e:2x2", dir, "--json"}, 1, "including --json: put flags of lazo plan before it"},
		{"arguments of a folder", []string{"--for=v5e:2x2", dir, "-batch", "8"}, 1, "arguments are only for a Go program, and " + dir + " is not one"},
		{"a flag behind a program", []string{"--for=v5e:2x2", library, "--json"}, 1, "lazo: note: arguments after " + library + " go to the Go program, including --json"},
		{"no program", []string{"--for=v5e:2x2", library}, 1, library + " has package library, which is not a program: expected package main"},
		{"a file of a program", []string{"--for=v5e:2x2", source}, 1, "is a file of Go: expected the folder of the program, " + library},
		{"no plugin", []string{"--for=h100:8", "--prefix=" + root, dir}, 1, "lazo install"},
	} {
		got := run(t, append([]string{"plan"}, row.args...)...)
		assert.Equal(t, row.code, got.code, row.name)
		assert.Contains(t, got.stderr, row.want, row.name)
		assert.Empty(t, got.stdout, row.name)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "manifest.json")))
	assert.Equal(t, 1, run(t, "plan", "--for=v5e:2x2", dir).code)
}
