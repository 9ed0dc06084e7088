//go:build nightly

package pjrt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/internal/install"
)

// testdata/api-0.81 matches the header in the wheel of cpu81. It has only the offsets and sizes of the declarations in
// api.h: structs of bytes with PJRT's names.
func TestOldestLayout(t *testing.T) {
	plugin, err := install.Find("cpu81", "")
	require.NoError(t, err, "this test needs the header of the plugin cpu81: lazo install cpu81")
	structs, functions := declaredAPI(t)
	for i := range functions {
		functions[i] = "PJRT_" + functions[i]
	}
	structs = append(structs, declaredStruct{"Api", append([]string{"struct_size", "extension_start", "pjrt_api_version"}, functions...)},
		declaredStruct{"Api_Version", []string{"struct_size", "extension_start", "major_version", "minor_version"}},
		declaredStruct{"Extension_Base", []string{"struct_size", "type", "next"}})
	var ask strings.Builder
	ask.WriteString(`#include <stddef.h>
#include <stdio.h>
#include "pjrt_c_api.h"
static size_t at, gaps;
static void field(const char *name, size_t offset, size_t size) {
	if (offset > at) printf("\tchar gap%zu[%zu];\n", gaps++, offset - at);
	if (name) printf("\tchar %s[%zu];\n", name, size);
	at = offset + size;
}
#define FIELD(of, f) field(#f, offsetof(of, f), sizeof(((of*)0)->f));
int main(void) {
	printf("// Where PJRT's C API 0.81 has what api.h declares. Written by TestOldestLayout from the header of the plugin cpu81.\n");
	printf("#define PJRT_API_MAJOR %d\n#define PJRT_API_MINOR %d\n#define PJRT_Api_STRUCT_SIZE %zu\n",
		PJRT_API_MAJOR, PJRT_API_MINOR, (size_t)PJRT_Api_STRUCT_SIZE);
`)
	names, _ := namedNumbers(t)
	for _, name := range names {
		fmt.Fprintf(&ask, "printf(\"#define %s %%d\\n\", (int)%s);\n", name, name)
	}
	for _, s := range structs {
		ask.WriteString("at = gaps = 0; printf(\"typedef struct {\\n\");\n")
		for _, f := range s.fields {
			fmt.Fprintf(&ask, "FIELD(PJRT_%s, %s)\n", s.name, f)
		}
		fmt.Fprintf(&ask, "field(NULL, sizeof(PJRT_%s), 0); printf(\"} PJRT_%s;\\n\");\n", s.name, s.name)
	}
	ask.WriteString("return 0; }\n")
	source := filepath.Join(t.TempDir(), "ask.c")
	require.NoError(t, os.WriteFile(source, []byte(ask.String()), 0o600))
	program := strings.TrimSuffix(source, ".c")
	out, err := exec.Command(run(t, "go", "env", "CC"), "-I", filepath.Join(filepath.Dir(plugin.Path), "include"), "-o", program, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	golden.Equal(t, "testdata/api-0.81/pjrt_c_api.h", run(t, program)+"\n")
}
