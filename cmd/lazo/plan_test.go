package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What lazo plan says is tested in xla/plan. No test has the compilers of TPUs and GPUs: docs/plan.md has what they
// gave.
func TestPlanMistakes(t *testing.T) {
	dir, file := exported(t)
	root := t.TempDir()
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	for _, row := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no target", []string{dir}, 2, "--for"},
		{"no path", []string{"--for=v5e:2x2"}, 2, "<path>"},
		{"an unknown machine", []string{"--for=k80:8", dir}, 1, "the kinds are v4, v5e"},
		{"a number of chips", []string{"--for=v5e:16", dir}, 1, `as "v5e:4x4"`},
		{"a path that is not there", []string{"--for=v5e:2x2", "/none"}, 1, "/none: no such file"},
		{"a folder that was not exported", []string{"--for=v5e:2x2", root}, 1, "it has no manifest.json"},
		{"another size of batch", []string{"--for=v5e:2x2", "--batch=7", dir}, 1, "no program for a batch of 7"},
		{"a size of a file", []string{"--for=v5e:2x2", "--batch=7", file}, 1, "a file has one program"},
		{"a negative batch", []string{"--for=v5e:2x2", "--batch=-7", dir}, 1, "expected a number of examples"},
		{"no devices", []string{"--for=v5e:2x2", "--devices=0", dir}, 1, "0 devices, expected 1"},
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
