package checkpoint_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/checkpoint"
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
