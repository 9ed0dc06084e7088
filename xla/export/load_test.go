package export

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// content reads all files of the folder.
func content(t *testing.T, m *vfs.Mem) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := m.ReadDir("model")
	require.NoError(t, err)
	for _, name := range names {
		files[name], err = readFile(inFolder{m, "model"}, name, 1<<20)
		require.NoError(t, err)
	}
	return files
}

func folder(t *testing.T, files map[string][]byte) *vfs.Mem {
	t.Helper()
	m := &vfs.Mem{}
	require.NoError(t, m.Mkdir("model"))
	for name, data := range files {
		_, err := createFile(m, "model/"+name, func(w io.Writer) error { _, err := w.Write(data); return err })
		require.NoError(t, err)
	}
	return m
}

// unsummed is content without the manifest's checksum, as in an older folder, or if someone removes it.
func unsummed(t *testing.T, m *vfs.Mem) map[string][]byte {
	t.Helper()
	files := content(t, m)
	delete(files, sumName)
	_, err := readBack(folder(t, files))
	require.NoError(t, err)
	return files
}

// Every bit of each file is checked, and every truncation of a file is found.
func TestLoad_damagedFiles(t *testing.T) {
	files := content(t, written(t))
	tried := 0
	for _, name := range []string{programName, weightsName, exampleName, manifestName, sumName} {
		try := func(data []byte) {
			tried++
			changed := maps.Clone(files)
			changed[name] = data
			_, err := readBack(folder(t, changed))
			require.ErrorIs(t, err, ErrDamaged, name)
		}
		for i := range files[name] {
			flipped := slices.Clone(files[name])
			flipped[i] ^= 1 << (i % 8)
			try(flipped)
			try(files[name][:i])
		}
		try(append(slices.Clone(files[name]), 0))
	}
	t.Logf("%d damages, all found", tried)
}

// A changed manifest is damaged or still meaningful. Nothing panics, and nothing allocates memory for the manifest's
// claims.
func TestLoad_damagedManifest(t *testing.T) {
	files := unsummed(t, written(t))
	damagedOnes, fine := 0, 0
	for i := range files[manifestName] {
		for bit := range 8 {
			changed := maps.Clone(files)
			changed[manifestName] = slices.Clone(files[manifestName])
			changed[manifestName][i] ^= 1 << bit
			p, err := readBack(folder(t, changed))
			if err == nil {
				require.NoError(t, p.check())
				fine++
				continue
			}
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, errNewer), "%v", err)
			damagedOnes++
		}
	}
	require.Greater(t, damagedOnes, fine)
	t.Logf("%d damaged, %d with another name or text in them", damagedOnes, fine)
}

func TestLoad_hostile(t *testing.T) {
	files := unsummed(t, written(t))
	for _, row := range []struct {
		name, from, to, want string
	}{
		{"not JSON", "{", "", "damaged"},
		{"more behind", "]\n}", "]\n}{}", "after top-level value"},
		{"an unknown field", `"lazo"`, `"lasso"`, `unknown field "lasso"`},
		{"a newer format", `"format": 1`, `"format": 3`, "format 3, this lazo reads up to 2: written by a newer lazo"},
		{"no version of StableHLO", `"1.13.3"`, `"1.1s.3"`, `in StableHLO "1.1s.3": expected versions`},
		{"no version of lazo", `"lazo": "`, `"lazo": "(`, `: expected versions, such as "v0.1.0" and "1.13.3"`},
		{"no format", `"format": 1`, `"format": 0`, "format 0, expected 1 to 2"},
		{"a file with a path", `"weights.safetensors"`, `"../weights.safetensors"`, "unknown file"},
		{"an array of petabytes", `"role":"state","dtype":"f32","shape":[2]`, `"role":"state","dtype":"f32","shape":[1125899906842624]`, "expected"},
		{"more than can be counted", `"shape":[2]`, `"shape":[2147483648,2147483648,2147483648]`, "overflows an integer"},
		{"a negative axis", `"shape":[2]`, `"shape":[-2]`, "negative"},
		{"many axes", `"shape":[2]`, `"shape":[` + strings.Repeat("1,", 64) + `2]`, "65 axes, expected at most 64"},
		{"an unknown dtype", `"i64"`, `"i65"`, `unknown dtype "i65"`},
		{"an unknown role", `"batch"`, `"butch"`, `role "butch"`},
		{"bytes below none", `"bytes":`, `"bytes":-`, "of -"},
		{"a program of terabytes", `"program.mlir":{"bytes":`, `"program.mlir":{"bytes":1000000000000`, "program.mlir of 1000000000000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			changed := maps.Clone(files)
			text := strings.Replace(string(files[manifestName]), row.from, row.to, 1)
			require.NotEqual(t, string(files[manifestName]), text)
			changed[manifestName] = []byte(text)
			_, err := readBack(folder(t, changed))
			require.ErrorContains(t, err, row.want)
		})
	}
	changed := maps.Clone(files)
	delete(changed, manifestName)
	_, err := readBack(folder(t, changed))
	require.ErrorContains(t, err, "it has no manifest.json: expected an exported folder")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Load(file)
	require.ErrorContains(t, err, "not a directory: it is a file, expected a folder of Program.Write")
	_, err = Load(t.TempDir() + "/none")
	require.ErrorContains(t, err, "export: load ")
}

// Any failing call of the file system is an error, and no file stays open.
func TestLoad_failsAtEachCall(t *testing.T) {
	m, failed := written(t), 0
	for n := int64(1); ; n++ {
		broken := errors.New("broken")
		counted := vfs.Count(vfs.Fail(m, vfs.Rule{N: n, Err: broken}))
		_, err := readBack(counted)
		require.Zero(t, counted.Handles())
		if err == nil {
			break
		}
		require.ErrorIs(t, err, broken)
		failed++
	}
	require.Greater(t, failed, 10)
}

// A file of tensors with a correct digest must still match the manifest.
func TestLoad_otherTensors(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(map[string]*tensors.Tensor)
		want  string
	}{
		{"a bool of 2", func(all map[string]*tensors.Tensor) {
			require.NoError(t, all["outputs/large"].MutableBytes(func(b []byte) { b[1] = 2 }))
		}, `"outputs/large": bool 1 is 0x02`},
		{"one less", func(all map[string]*tensors.Tensor) { delete(all, "outputs/large") }, "3 tensors, expected 4"},
		{"another name", func(all map[string]*tensors.Tensor) {
			all["outputs/small"] = all["outputs/large"]
			delete(all, "outputs/large")
		}, `a tensor "outputs/small"`},
		{"another shape", func(all map[string]*tensors.Tensor) { all["inputs/x"] = tensors.FromValue([]float32{1}) }, `"inputs/x" is F32[1], expected (Float32)[2]`},
		{"another dtype", func(all map[string]*tensors.Tensor) { all["inputs/x"] = tensors.FromValue([]int32{1, 2}) }, `"inputs/x" is I32[2], expected (Float32)[2]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := written(t)
			files := unsummed(t, m)
			all := program().Example.all()
			row.spoil(all)
			var b bytes.Buffer
			require.NoError(t, writeTensors(&b, all))
			old := sha256.Sum256(files[exampleName])
			files[manifestName] = bytes.Replace(files[manifestName], fmt.Appendf(nil, `{"bytes":%d,"sha256":"%x"}`, len(files[exampleName]), old),
				fmt.Appendf(nil, `{"bytes":%d,"sha256":"%x"}`, b.Len(), sha256.Sum256(b.Bytes())), 1)
			files[exampleName] = b.Bytes()
			_, err := readBack(folder(t, files))
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, row.want)
		})
	}
}
