package xla_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// addTo compiles x += n in place and runs it three times on 1, 2: often enough to overwrite the state.
func addTo(t *testing.T, r *xla.Runtime, n float64) []float32 {
	t.Helper()
	shape := shapes.Make(dtypes.Float32, 2)
	p, err := r.Compile("add", func(g *graph.Graph) xla.Built {
		return xla.Built{Outputs: []*graph.Node{graph.AddScalar(graph.Parameter(g, "x", shape), n)}, InPlace: map[int]int{0: 0}}
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	x, err := r.BufferFromFlatData(0, []float32{1, 2}, shape)
	require.NoError(t, err)
	inputs := []compute.Buffer{x}
	for range 3 {
		_, err = p.Run(inputs, nil)
		require.NoError(t, err)
	}
	got := []float32{0, 0}
	require.NoError(t, inputs[0].ToFlatData(got))
	require.NoError(t, inputs[0].Finalize())
	return got
}

func entriesOf(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	return list
}

func TestCompileCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "compiled")
	first := plugintest.Uncached(t, xla.CompileCache(dir, 0))
	require.Equal(t, []float32{31, 32}, addTo(t, first, 10))
	require.Zero(t, xla.CacheHits(first))
	require.Len(t, entriesOf(t, dir), 1)

	second := plugintest.Uncached(t, xla.CompileCache(dir, 0))
	require.Equal(t, []float32{31, 32}, addTo(t, second, 10), "a loaded program computes the same, in place")
	require.Equal(t, 1, xla.CacheHits(second))
	require.Equal(t, []float32{61, 62}, addTo(t, second, 20), "another program is another entry")
	require.Equal(t, 1, xla.CacheHits(second))
	require.Len(t, entriesOf(t, dir), 2)

	other := plugintest.Uncached(t, xla.CompileCache(dir, 0), xla.ClientOption("cpu_device_count", 2))
	require.Equal(t, []float32{31, 32}, addTo(t, other, 10))
	require.Zero(t, xla.CacheHits(other), "other devices")
}

// Damaged entries are skipped with a warning, and replaced.
func TestCompileCache_damage(t *testing.T) {
	for _, row := range []struct {
		name, warning string
		change        func([]byte) []byte
		size          int64 // zeros are appended up to this size
	}{
		{"a flipped bit", "digest", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, 0},
		{"cut short", "digest", func(b []byte) []byte { return b[:len(b)-1] }, 0},
		{"only its head", "not a compiled program", func(b []byte) []byte { return b[:20] }, 0},
		{"empty", "not a compiled program", func([]byte) []byte { return nil }, 0},
		{"foreign", "not a compiled program", func([]byte) []byte { return []byte(strings.Repeat("hello ", 100)) }, 0},
		{"more than memory", "expected at most", func(b []byte) []byte { return b }, 1 << 42},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o700))
			addTo(t, plugintest.Uncached(t, xla.CompileCache(dir, 0)), 10)
			entry := entriesOf(t, dir)[0]
			whole, err := os.ReadFile(entry)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(entry, row.change(bytes.Clone(whole)), 0o600))
			require.NoError(t, os.Truncate(entry, max(row.size, int64(len(row.change(bytes.Clone(whole)))))))
			var log bytes.Buffer
			r := plugintest.Uncached(t, xla.CompileCache(dir, 0), xla.Log(slog.New(slog.NewTextHandler(&log, nil))))
			require.Equal(t, []float32{31, 32}, addTo(t, r, 10))
			require.Zero(t, xla.CacheHits(r))
			require.Contains(t, log.String(), row.warning)
			again := plugintest.Uncached(t, xla.CompileCache(dir, 0))
			addTo(t, again, 10)
			require.Equal(t, 1, xla.CacheHits(again), "it was replaced")
		})
	}
}

// An entry is valid under its own key only: under another's name it is skipped.
func TestCompileCache_entriesOfOtherNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "compiled")
	first := plugintest.Uncached(t, xla.CompileCache(dir, 0))
	addTo(t, first, 10)
	addTo(t, first, 20)
	entries := entriesOf(t, dir)
	require.Len(t, entries, 2)
	spare := filepath.Join(dir, "spare")
	require.NoError(t, os.Rename(entries[0], spare))
	require.NoError(t, os.Rename(entries[1], entries[0]))
	require.NoError(t, os.Rename(spare, entries[1]))
	second := plugintest.Uncached(t, xla.CompileCache(dir, 0))
	require.Equal(t, []float32{31, 32}, addTo(t, second, 10))
	require.Equal(t, []float32{61, 62}, addTo(t, second, 20))
	require.Zero(t, xla.CacheHits(second))
}

func TestCompileCache_limit(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	addTo(t, plugintest.Uncached(t, xla.CompileCache(dir, 0)), 1)
	first := entriesOf(t, dir)[0]
	info, err := os.Stat(first)
	require.NoError(t, err)
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(first, long, long))
	stranger := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(stranger, make([]byte, 1<<20), 0o600))
	r := plugintest.Uncached(t, xla.CompileCache(dir, 5*info.Size()/2))
	for n := range 4 {
		addTo(t, r, float64(2+n))
	}
	require.NoFileExists(t, first, "the oldest went")
	require.FileExists(t, stranger, "what is not lazo's stays")
	require.Len(t, entriesOf(t, dir), 3)
}

func TestCompileCache_refuses(t *testing.T) {
	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o777))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, row := range []struct {
		name, dir string
		limit     int64
		want      string
	}{
		{"a folder of everybody's", open, 0, "is not yours alone: every user may write to it"},
		{"a file", file, 0, "not a directory"},
		{"a negative limit", t.TempDir(), -1, "the limit must not be negative, got -1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := xla.Open(t.Context(), xla.CPU, xla.CompileCache(row.dir, row.limit))
			require.ErrorContains(t, err, row.want)
		})
	}
}

// A folder is counted once for all runtimes of a process: a count after the second entry would give an eighth of the
// rest.
func TestCompileCache_countsItsFolderOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "compiled")
	first := plugintest.Uncached(t, xla.CompileCache(dir, 0))
	addTo(t, first, 1)
	room := xla.CacheRoom(first)
	require.Positive(t, room)
	second := plugintest.Uncached(t, xla.CompileCache(dir, 0))
	addTo(t, second, 2)
	size := int64(0)
	for _, entry := range entriesOf(t, dir) {
		info, err := os.Stat(entry)
		require.NoError(t, err)
		size = max(size, info.Size())
	}
	require.InDelta(t, room-size, xla.CacheRoom(second), 1000)
	require.Greater(t, size, int64(2000))
}
