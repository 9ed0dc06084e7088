package pjrt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla/install"
)

// layout holds what is declared by hand against a published header.
const layout = `
#include <stddef.h>
#include "pjrt_c_api.h"
#include "table.h"
#define SAME(ours, our_field, theirs, their_field) \
	_Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
		sizeof(((ours*)0)->our_field) == sizeof(((theirs*)0)->their_field), #theirs "." #their_field)
SAME(lazo_pjrt_table, struct_size, PJRT_Api, struct_size);
SAME(lazo_pjrt_table, extension_start, PJRT_Api, extension_start);
SAME(lazo_pjrt_table, version, PJRT_Api, pjrt_api_version);
SAME(lazo_pjrt_version, struct_size, PJRT_Api_Version, struct_size);
SAME(lazo_pjrt_version, extension_start, PJRT_Api_Version, extension_start);
SAME(lazo_pjrt_version, major_version, PJRT_Api_Version, major_version);
SAME(lazo_pjrt_version, minor_version, PJRT_Api_Version, minor_version);
_Static_assert(sizeof(lazo_pjrt_version) == sizeof(PJRT_Api_Version), "PJRT_Api_Version");
_Static_assert(PJRT_API_MAJOR == %d && PJRT_API_MINOR >= %d && PJRT_Api_STRUCT_SIZE >= %d, "version");
`

func TestTableMatchesHeaders(t *testing.T) {
	plugin, err := install.Find("cpu", "")
	require.NoError(t, err, "these tests need the CPU plugin: make setup")
	oldest := filepath.Join(filepath.Dir(plugin.Path), "include")
	newest := filepath.Join(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla"), "pkg", "pjrt")
	rows := []struct {
		name, include   string
		minor, size     int
		compiles, exact bool
	}{
		{"the CPU plugin's", oldest, MinMinor, MinTableSize, true, true},
		{"go-xla's", newest, MinMinor, MinTableSize, true, false},
		{"the assertions can fail: minor", newest, 10_000, MinTableSize, false, false},
		{"the assertions can fail: size", newest, MinMinor, MinTableSize + 1<<20, false, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			require.FileExists(t, filepath.Join(row.include, "pjrt_c_api.h"))
			text := fmt.Sprintf(layout, Major, row.minor, row.size)
			if row.exact {
				text = strings.ReplaceAll(text, ">=", "==")
			}
			source := filepath.Join(t.TempDir(), "layout.c")
			require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
			out, err := exec.Command(run(t, "go", "env", "CC"), "-fsyntax-only", "-I", row.include, "-I", ".", source).CombinedOutput()
			assert.Equal(t, row.compiles, err == nil, "%s", out)
		})
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
