package safetensors_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// shared is what testdata/interop.py has as values, as bytes.
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
	python("f8_e4m3", safetensors.F8E4M3, "38 fe 30", 3),
	python("f8_e5m2", safetensors.F8E5M2, "3c fb 7c", 3),
	python("f8_e4m3fnuz", safetensors.F8E4M3FNUZ, "40 7f 38", 3),
	python("f8_e5m2fnuz", safetensors.F8E5M2FNUZ, "40 7f c0", 3),
	python("f8_e8m0", safetensors.F8E8M0, "7f 80 7d", 3),
	python("scalar", safetensors.F32, "000080bf"),
	python("empty", safetensors.I64, "", 0, 3),
	python("é/😀\n\"\\", safetensors.U8, "07", 1),
}

var packed = []content{
	python("f4", safetensors.F4, "c2 1f", 2, 2),
	python("f6_e2m3", safetensors.F6E2M3, "01 02 03", 4),
	python("f6_e3m2", safetensors.F6E3M2, "ff 00 80", 2, 2),
}

var sharedMetadata = map[string]string{"é \"\\/\n": "😀\x01"}

func python(name string, d safetensors.DType, digits string, dims ...int) content {
	data, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		panic(err)
	}
	return content{safetensors.Tensor{Name: name, DType: d, Dims: dims}, data}
}

// sorted gives tensors in the order of [safetensors.Sort].
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

//go:embed testdata/requirements.txt
var requirements string

// TestInterop runs the Python package itself. Without a Python to run it is skipped, which go test -v shows; with
// LAZO_INTEROP=require in the environment, for CI, it fails then.
func TestInterop(t *testing.T) {
	interpreter, err := venv(t)
	if err != nil {
		if os.Getenv("LAZO_INTEROP") == "require" {
			t.Fatalf("LAZO_INTEROP=require, but the Python package cannot be run: %v", err)
		}
		t.Skipf("NOT TESTED against the Python package: %v", err)
	}
	folder := t.TempDir()
	script := func(verb string) string {
		out, err := exec.CommandContext(t.Context(), interpreter, "testdata/interop.py", verb, folder).CombinedOutput()
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

// venv gives a Python with the packages of testdata/requirements.txt. It is made once, by pip from PyPI, in the user's
// folder for caches.
func venv(t *testing.T) (interpreter string, err error) {
	if testing.Short() && os.Getenv("LAZO_INTEROP") == "" {
		return "", fmt.Errorf("-short makes no virtual environment")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(name string, args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			const tail = 500
			return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out[max(0, len(out)-tail):])
		}
		return string(out), nil
	}
	version, err := run("python3", "--version")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "lazo-test", fmt.Sprintf("safetensors-%.8x", sha256.Sum256([]byte(version+requirements))))
	interpreter = filepath.Join(folder, "bin", "python")
	if _, err := os.Stat(interpreter); err == nil {
		return interpreter, nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o750); err != nil {
		return "", err
	}
	// Made aside and then renamed, so that what is there is whole. Its python finds its packages wherever it lies.
	aside, err := os.MkdirTemp(filepath.Dir(folder), ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(aside)
	if _, err := run("python3", "-m", "venv", aside); err != nil {
		return "", err
	}
	if _, err := run(filepath.Join(aside, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		"--only-binary=:all:", "--retries=1", "--timeout=20", "--requirement=testdata/requirements.txt"); err != nil {
		return "", err
	}
	if err := os.Rename(aside, folder); err != nil {
		if _, made := os.Stat(interpreter); made != nil { // by another test process meanwhile
			return "", err
		}
	}
	return interpreter, nil
}
