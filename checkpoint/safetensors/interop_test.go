package safetensors_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// shared has the values of testdata/safetensors_check.py, as bytes.
var shared = []content{
	python("bool", safetensors.Bool, "01 00 00 01", 2, 2),
	python("u8", safetensors.U8, "00 01 ff", 3),
	python("i8", safetensors.I8, "80 ff 7f", 3),
	python("i16", safetensors.I16, "0080 feff ff7f", 3),
	python("u16", safetensors.U16, "0000 0201 ffff", 3),
	python("f16", safetensors.F16, "0038 00c0 007c 0080", 4),
	python("bf16", safetensors.BF16, "803f 20c0 807f 4940", 4),
	python("i32", safetensors.I32, "00000080 03020100 ffffffff", 3),
	python("u32", safetensors.U32, "00000000 04030201 ffffffff", 3, 1),
	python("f32", safetensors.F32, "0000c03f 00000080 0000807f ffff7f7f", 2, 2),
	python("c64", safetensors.C64, "0000c03f 000000c0", 1),
	python("f64", safetensors.F64, "000000000000f8bf 0100000000000000", 2),
	python("i64", safetensors.I64, "0000000000000080 0100000000002000", 2),
	python("u64", safetensors.U64, "ffffffffffffffff 0100000000000080", 2),
	python("f8_e4m3", named("F8_E4M3"), "38 fe 30", 3),
	python("f8_e5m2", named("F8_E5M2"), "3c fb 7c", 3),
	python("f8_e4m3fnuz", named("F8_E4M3FNUZ"), "40 7f 38", 3),
	python("f8_e5m2fnuz", named("F8_E5M2FNUZ"), "40 7f c0", 3),
	python("f8_e8m0", named("F8_E8M0"), "7f 80 7d", 3),
	python("scalar", safetensors.F32, "000080bf"),
	python("empty", safetensors.I64, "", 0, 3),
	python("é/😀\n\"\\", safetensors.U8, "07", 1),
}

var packed = []content{
	python("f4", named("F4"), "c2 1f", 2, 2),
	python("f6_e2m3", named("F6_E2M3"), "01 02 03", 4),
	python("f6_e3m2", named("F6_E3M2"), "ff 00 80", 2, 2),
}

var sharedMetadata = map[string]string{"é \"\\/\n": "😀\x01"}

func python(name string, d safetensors.DType, digits string, dims ...int) content {
	data, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		panic(err)
	}
	return content{safetensors.Tensor{Name: name, DType: d, Dims: dims}, data}
}

// sorted returns tensors in the order of [safetensors.Sort].
func sorted(all []content) (ordered []content) {
	var list []safetensors.Tensor
	for _, c := range all {
		list = append(list, c.Tensor)
	}
	safetensors.Sort(list)
	for _, tensor := range list {
		i := slices.IndexFunc(all, func(c content) bool { return c.Name == tensor.Name })
		ordered = append(ordered, all[i])
	}
	return ordered
}

// A file that the Python package 0.8.0 has written, kept here, so that this needs no Python: lazo reads it, and writes
// the same bytes.
func TestFileOfPython(t *testing.T) {
	file, err := os.ReadFile("testdata/numpy.safetensors")
	require.NoError(t, err)
	got, metadata, err := read(file)
	require.NoError(t, err)
	require.Equal(t, sharedMetadata, metadata)
	require.Empty(t, cmp.Diff(sorted(shared), got, same...))
	require.True(t, bytes.Equal(file, write(t, sorted(shared), sharedMetadata)), "byte for byte")

	types := map[safetensors.DType]bool{}
	for _, c := range slices.Concat(shared, packed) {
		types[c.DType] = true
	}
	require.Len(t, types, len(allDTypes()), "every type is in the tables")
}

// TestInterop runs the Python package itself. scripts/safetensors_check.sh, which make check runs, installs it and says
// where it is.
func TestInterop(t *testing.T) {
	interpreter := os.Getenv("LAZO_PYTHON")
	if interpreter == "" {
		t.Skip("NOT TESTED against the Python package: make interop does that")
	}
	folder := t.TempDir()
	script := func(verb string) string {
		out, err := exec.CommandContext(t.Context(), interpreter, "testdata/safetensors_check.py", verb, folder).CombinedOutput()
		require.NoError(t, err, "%s: %s", verb, out)
		return string(out)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "lazo.safetensors"), write(t, slices.Concat(shared, packed), sharedMetadata), 0o600))
	said := script("check")
	require.Equal(t, fmt.Sprintf("%d tensors equal, %d of them as arrays\n", len(shared)+len(packed), len(shared)-5), said)
	t.Logf("lazo to Python: %s", said)

	script("write")
	fresh, err := os.ReadFile(filepath.Join(folder, "numpy.safetensors"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(write(t, sorted(shared), sharedMetadata), fresh), "what Python writes now is what lazo writes: %q", fresh)
	got, metadata, err := read(fresh)
	require.NoError(t, err)
	require.Equal(t, sharedMetadata, metadata)
	require.Empty(t, cmp.Diff(sorted(shared), got, same...))
	file, err := os.ReadFile(filepath.Join(folder, "packed.safetensors"))
	require.NoError(t, err)
	got, _, err = read(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(packed[:1], got, same...))
	t.Logf("Python to lazo: %d tensors equal", len(shared)+1)
}
