package pjrt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layout checks the declarations written by hand against a published header.
const layout = `
#include <stddef.h>
#include "pjrt_c_api.h"
#include "api.h"
#include "run.h"
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
%s
_Static_assert(PJRT_API_MAJOR == %d && PJRT_API_MINOR >= %d && PJRT_Api_STRUCT_SIZE >= %d, "version");
`

func TestTableMatchesHeaders(t *testing.T) {
	const oldest = "testdata/api-0.81" // made by TestOldestLayout
	newest := filepath.Join(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla"), "pjrt")
	rows := []struct {
		name, include   string
		minor, size     int
		compiles, exact bool
	}{
		{"the oldest", oldest, MinMinor, MinTableSize, true, true},
		{"go-xla's", newest, MinMinor, MinTableSize, true, false},
		{"the assertions can fail: minor", newest, 10_000, MinTableSize, false, false},
		{"the assertions can fail: size", newest, MinMinor, MinTableSize + 1<<20, false, false},
		{"the assertions can fail: field", oldest, MinMinor, MinTableSize, false, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			require.FileExists(t, filepath.Join(row.include, "pjrt_c_api.h"))
			text := fmt.Sprintf(layout, declared(t), Major, row.minor, row.size)
			if strings.HasSuffix(row.name, "field") {
				text = strings.Replace(text, "PJRT_Client_Create_Args, client)", "PJRT_Client_Create_Args, kv_put_user_arg)", 1)
			}
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

// declaredAPI returns the declarations of api.h: structs with their fields, and functions.
func declaredAPI(t *testing.T) (structs []declaredStruct, functions []string) {
	t.Helper()
	header, err := os.ReadFile("api.h")
	require.NoError(t, err)
	field := regexp.MustCompile(`(\w+);`)
	for _, s := range regexp.MustCompile(`(?ms)^LAZO_STRUCT\((\w+), (.*?)\)\n`).FindAllStringSubmatch(string(header), -1) {
		of := declaredStruct{s[1], []string{"struct_size", "extension_start"}}
		for _, f := range field.FindAllStringSubmatch(s[2], -1) {
			of.fields = append(of.fields, f[1])
		}
		structs = append(structs, of)
	}
	for _, f := range regexp.MustCompile(`\bF\((\w+)\)`).FindAllStringSubmatch(string(header), -1) {
		functions = append(functions, f[1])
	}
	require.Greater(t, len(structs), 55)
	require.Greater(t, len(functions), 90)
	return structs, functions
}

type declaredStruct struct {
	name   string
	fields []string
}

// namedNumbers returns PJRT's constants, by their names in Go and C.
func namedNumbers(t *testing.T) (names []string, values []int) {
	t.Helper()
	number := func(name string, value int) { names, values = append(names, name), append(values, value) }
	for i, name := range strings.Fields("INVALID PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 BF16 C64 C128 F8E5M2 F8E4M3FN " +
		"F8E4M3B11FNUZ F8E5M2FNUZ F8E4M3FNUZ S4 U4 TOKEN S2 U2 F8E4M3 F8E3M4 F8E8M0FNU F4E2M1FN") {
		number("PJRT_Buffer_Type_"+name, i)
	}
	for i, name := range codeNames {
		number("PJRT_Error_Code_"+name, i+1)
	}
	for i, name := range []string{"kString", "kInt64", "kInt64List", "kFloat", "kBool"} {
		number("PJRT_NamedValue_"+name, i)
	}
	number("PJRT_Buffer_MemoryLayout_Type_Tiled", 0)
	number("PJRT_HostBufferSemantics_kImmutableOnlyDuringCall", 0)
	number("PJRT_HostBufferSemantics_kImmutableZeroCopy", 2)
	number("PJRT_Extension_Type_HostAllocator", len(extensionNames)-1)
	return names, values
}

// declared asserts every struct, field and function of api.h, and every constant of the Go code.
func declared(t *testing.T) string {
	t.Helper()
	structs, functions := declaredAPI(t)
	var text strings.Builder
	fields := 0
	for _, s := range structs {
		// A newer header may have more fields. The plugin knows from struct_size that lazo lacks them.
		fmt.Fprintf(&text, "_Static_assert(sizeof(PJRT_%s) >= sizeof(lazo_%s), \"size of %s\");\n", s.name, s.name, s.name)
		for _, f := range s.fields {
			fmt.Fprintf(&text, "SAME(lazo_%s, %s, PJRT_%s, %s);\n", s.name, f, s.name, f)
			fields++
		}
	}
	for _, f := range functions {
		fmt.Fprintf(&text, "SAME(lazo_Api, %s, PJRT_Api, PJRT_%s);\n", f, f)
	}
	for _, f := range []string{"struct_size", "type", "next"} {
		fmt.Fprintf(&text, "SAME(lazo_Extension_Base, %s, PJRT_Extension_Base, %s);\n", f, f)
	}
	t.Logf("%d structs, %d fields, %d functions", len(structs), fields, len(functions))
	names, values := namedNumbers(t)
	for i, name := range names {
		fmt.Fprintf(&text, "_Static_assert(%s == %d, \"%s\");\n", name, values[i], name)
	}
	fmt.Fprintf(&text, "_Static_assert(LAZO_MAX_DIMS == %d, \"dimensions\");\n", maxDims)
	return text.String()
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
