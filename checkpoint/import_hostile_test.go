package checkpoint_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

const gomlxText = `{"Params":[{"Scope":"/","Key":"lr","Value":0.5,"ValueType":"float64"}],` +
	`"Variables":[{"ParameterName":"var://w","Dimensions":[2,3],"DType":"Float32","Pos":0,"Length":24},` +
	`{"ParameterName":"var:/a/b","Dimensions":null,"DType":"Int64","Pos":24,"Length":8}],"BinFormat":"uncompressed"}`

func gomlxBin() []byte { return []byte("abcdefghijklmnopqrstuvwx\x07\x00\x00\x00\x00\x00\x00\x00") }

// gomlxHeaders are the uncompressed beginnings of the files of v0.26 and v0.28.
var gomlxHeaders = []string{"gomlx_checkpoints\x04gzip", "gomlx_checkpointss\x04gzip"}

// zipped returns a file as GoMLX compresses it.
func zipped(t T, data []byte) []byte { return zippedBehind(t, gomlxHeaders[0], data) }

func zippedBehind(t T, header string, data []byte) []byte {
	t.Helper()
	b := bytes.NewBufferString(header)
	w := gzip.NewWriter(b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// importOf imports files of these contents, and checks how much memory that took.
func importOf(t T, text string, bin []byte, maxBytes ...int64) (*checkpoint.Checkpoint, float64, error) {
	t.Helper()
	m := &vfs.Mem{}
	write(t, m, "x.json", []byte(text))
	write(t, m, "x.bin", bin)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := checkpoint.ImportGoMLXFrom(m, "x", append(maxBytes, 0)[0])
	runtime.ReadMemStats(&after)
	taken, limit := after.TotalAlloc-before.TotalAlloc, uint64(2*(len(text)+len(bin))+64<<20)
	if len(maxBytes) == 0 {
		require.LessOrEqual(t, taken, limit)
	}
	return c, float64(taken) / float64(limit), err
}

// Adam of v0.26 keeps the moments of root variables in a scope that ends in a slash, and its files append another one.
func TestImportGoMLX_slashesOfAdam(t *testing.T) {
	c, _, err := importOf(t, strings.Replace(gomlxText, "var:/a/b", "var:/AdamOptimizer//w_1st_moment", 1), gomlxBin())
	require.NoError(t, err)
	require.Equal(t, "/AdamOptimizer/w_1st_moment", c.Tensors[0].Name)
	require.Equal(t, "/w", c.Tensors[1].Name)
	_, _, err = importOf(t, strings.Replace(gomlxText, "var:/a/b", "var:/w", 1), gomlxBin())
	require.ErrorContains(t, err, `variable 1, "/w": it appears twice`)
}

func TestF27_linksAndPipesOfGoMLX(t *testing.T) {
	for _, name := range []string{"x.json", "x.bin"} {
		for kind, do := range map[string]func(path string) error{
			"link": func(p string) error { return os.Symlink("/etc/passwd", p) },
			"pipe": func(p string) error { return unix.Mkfifo(p, 0o600) },
			"dir":  func(p string) error { return os.Mkdir(p, 0o700) },
		} {
			t.Run(kind+" for "+name, func(t *testing.T) {
				dir := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(dir, "x.json"), []byte(gomlxText), 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "x.bin"), gomlxBin(), 0o600))
				require.NoError(t, os.Remove(filepath.Join(dir, name)))
				require.NoError(t, do(filepath.Join(dir, name)))
				_, err := checkpoint.ImportGoMLX(filepath.Join(dir, "x.json"), 0)
				require.Error(t, err)
			})
		}
	}
}

// FuzzImportGoMLX imports arbitrary files. A file that it accepts can be saved.
func FuzzImportGoMLX(f *testing.F) {
	f.Add(gomlxText, gomlxBin())
	f.Add(strings.Replace(gomlxText, "uncompressed", "gzip", 1), zipped(f, gomlxBin()))
	dirs, err := filepath.Glob("testdata/gomlx-v*/*")
	require.NoError(f, err)
	require.Len(f, dirs, len(gomlxVersions)*len(gomlxForms))
	for _, dir := range dirs {
		files, err := filepath.Glob(dir + "/*")
		require.NoError(f, err)
		require.Len(f, files, 2)
		bin, err := os.ReadFile(files[0])
		require.NoError(f, err)
		text, err := os.ReadFile(files[1])
		require.NoError(f, err)
		f.Add(string(text), bin)
	}
	f.Fuzz(func(t *testing.T, text string, bin []byte) {
		c, _, err := importOf(t, text, bin)
		if err != nil {
			require.ErrorAs(t, err, new(*checkpoint.DamagedError))
			return
		}
		again := roundTrip(t, c.Content())
		require.Equal(t, c.Tensors, again.Tensors)
		require.Equal(t, c.Sections(), again.Sections())
	})
}

//lazo:norace
func TestF27_memoryOfGoMLX(t *testing.T) {
	some := func(n int, element func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = element(i)
		}
		return strings.Join(all, ",")
	}
	variable := func(i int) string {
		return fmt.Sprintf(`{"ParameterName":"var://%x","Dimensions":[0],"DType":"Bool","Pos":0,"Length":0}`, i)
	}
	param := func(kind, value string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf(`{"Scope":"","Key":"%x","Value":%s,"ValueType":"%s"}`, i, value, kind)
		}
	}
	list := func(params, variables string) string {
		return `{"Params":[` + params + `],"Variables":[` + variables + `]}`
	}
	huge := func(n int) string {
		return list("", fmt.Sprintf(`{"ParameterName":"var://w","Dimensions":[%d],"DType":"Bool","Pos":0,"Length":%d}`, n, n))
	}
	bomb := zipped(t, make([]byte, 64<<20))
	worst := 0.0
	for _, c := range []struct {
		name, text string
		bin        []byte
		good       bool
	}{
		{"8 MB of variables", list("", some(90_000, variable)), nil, false},
		{"50,000 variables", list("", some(50_000, variable)), nil, true},
		{"8 MB of parameters", list(some(120_000, param("int", "1")), ""), nil, false},
		{"10,000 parameters", list(some(10_000, param("string", `"`+strings.Repeat("<", 100)+`"`)), ""), nil, true},
		{"10,001 parameters", list(some(10_001, param("int", "1")), ""), nil, false},
		{"a text of 1 MB", list(param("string", `"`+strings.Repeat("x", 1<<20)+`"`)(0), ""), nil, true},
		{"a list of 1 MB", list(param("[]int", "[1"+strings.Repeat(",1", 1<<19)+"]")(0), ""), nil, true},
		{"a text of 8 MB", list(param("string", `"`+strings.Repeat("x", 7<<20)+`"`)(0), ""), nil, false},
		{"one byte too many", strings.Repeat(" ", 8<<20+1), nil, false},
		{"a bomb of a known size", huge(64 << 20), bomb, false},
		{"a bomb of an unknown size", huge(1 << 20), bomb, false},
		{"lengths without bytes", huge(30 << 20), zipped(t, nil), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.bin == nil {
				c.bin = []byte{}
			}
			_, part, err := importOf(t, c.text, c.bin)
			worst = max(worst, part)
			t.Logf("%.0f%% of what may be taken: %.200v", 100*part, err)
			require.Equal(t, c.good, err == nil)
		})
	}
	_, _, err := importOf(t, huge(64<<20), bomb)
	require.ErrorIs(t, err, safetensors.ErrLimit)
	require.ErrorContains(t, err, "give 67108864 bytes for maxBytes")
	c, _, err := importOf(t, huge(64<<20), bomb, 64<<20)
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, c.Bytes)
	c, _, err = importOf(t, strings.Replace(huge(64<<20-1), `}]}`, `},{"ParameterName":"var://x","Dimensions":[],"DType":"Bool","Pos":67108863,"Length":1}]}`, 1), bomb, 64<<20)
	require.NoError(t, err, "what is taken as it comes ends where the next variable begins")
	require.Len(t, c.Tensors, 2)
	t.Logf("F27: GoMLX's checkpoints: all memory ever taken is at most %.0f%% of twice the files and 64 MB", 100*worst)
}
