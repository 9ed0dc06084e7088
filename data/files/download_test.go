package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/internal/datatest"
	"github.com/lazo-ml/lazo/internal/fetch"
)

// mirror serves a small database over TLS and counts the requests for each file.
type mirror struct {
	*httptest.Server
	files    map[string][]byte
	requests map[string]int
}

type download struct {
	Download
	files []fetch.File
}

func (d download) run(ctx context.Context, dir string) error { return d.fetch(ctx, dir, d.files) }

func newMirror(t *testing.T) (*mirror, download) {
	m := &mirror{requests: map[string]int{}, files: map[string][]byte{
		"train-images-idx3-ubyte.gz": datatest.Gzip(t, images(25)),
		"train-labels-idx1-ubyte.gz": datatest.Gzip(t, labels(25)),
		"t10k-images-idx3-ubyte.gz":  datatest.Gzip(t, images(12)),
		"t10k-labels-idx1-ubyte.gz":  datatest.Gzip(t, labels(12)),
	}}
	m.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		m.requests[name]++ // requests come one after the other
		file, ok := m.files[name]
		if !ok || path.Dir(r.URL.Path) != "/mnist" {
			http.NotFound(w, r)
			return
		}
		w.Write(file)
	}))
	t.Cleanup(m.Close)
	d := download{Download: Download{URL: m.URL + "/mnist", HTTP: m.Client()}}
	for _, f := range mnistFiles {
		sum := sha256.Sum256(m.files[f.Name])
		d.files = append(d.files, fetch.File{Name: f.Name, Size: int64(len(m.files[f.Name])), SHA256: hex.EncodeToString(sum[:])})
	}
	return m, d
}

func names(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	return got
}

func TestDownload(t *testing.T) {
	umask := os.FileMode(syscall.Umask(0))
	syscall.Umask(int(umask))
	m, d := newMirror(t)
	dir := filepath.Join(t.TempDir(), "cache", "mnist")
	seen := map[string]bool{}
	d.Progress = func(file string, done, total int64) {
		seen[fmt.Sprintf("%s %v", file, done == total && total == int64(len(m.files[file])))] = true
	}
	require.NoError(t, d.run(t.Context(), dir))
	require.Len(t, names(t, dir), 4)
	for _, f := range mnistFiles {
		require.Equal(t, 1, m.requests[f.Name])
		require.True(t, seen[f.Name+" true"], "the last report is of the whole file")
	}
	train, test, err := MNIST(dir)
	require.NoError(t, err)
	require.Equal(t, []int{25, 12}, []int{train.Len(), test.Len()})
	for _, at := range []string{filepath.Dir(dir), dir, filepath.Join(dir, mnistFiles[0].Name)} { // S54
		info, err := os.Stat(at)
		require.NoError(t, err)
		require.Equal(t, map[bool]os.FileMode{true: 0o755, false: 0o644}[info.IsDir()]&^umask, info.Mode().Perm()&^umask, "other users may read %s", at)
	}

	clear(m.requests)
	require.NoError(t, d.run(t.Context(), dir))
	require.Empty(t, m.requests, "what is there is not fetched again")

	damaged := filepath.Join(dir, mnistFiles[2].Name)
	require.NoError(t, os.WriteFile(damaged, make([]byte, len(m.files[mnistFiles[2].Name])), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, mnistFiles[3].Name)))
	require.NoError(t, d.run(t.Context(), dir))
	require.Equal(t, map[string]int{mnistFiles[2].Name: 1, mnistFiles[3].Name: 1}, m.requests)
	require.NoError(t, fetch.VerifyFile(damaged, d.files[2].Size, d.files[2].SHA256))
}

func TestF25_DownloadOfMNISTFails(t *testing.T) {
	second := mnistFiles[1].Name
	cases := []struct {
		name string
		harm func(t *testing.T, m *mirror, d *download)
		is   error
	}{
		{"wrong digest", func(_ *testing.T, m *mirror, _ *download) { m.files[second][20] ^= 1 }, fetch.ErrDigest},
		{"longer", func(_ *testing.T, m *mirror, _ *download) { m.files[second] = append(m.files[second], 0) }, fetch.ErrSize},
		{"shorter", func(_ *testing.T, m *mirror, _ *download) { m.files[second] = m.files[second][1:] }, fetch.ErrSize},
		{"not found", func(_ *testing.T, m *mirror, _ *download) { delete(m.files, second) }, fetch.ErrStatus},
		{"not https", func(_ *testing.T, _ *mirror, d *download) { d.URL = "http://localhost/mnist" }, fetch.ErrInsecure},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, d := newMirror(t)
			c.harm(t, m, &d)
			dir := t.TempDir()
			require.ErrorIs(t, d.run(t.Context(), dir), c.is)
			for _, name := range names(t, dir) {
				require.Equal(t, mnistFiles[0].Name, name, "only what came before may be there")
			}
			_, good := newMirror(t)
			require.NoError(t, good.run(t.Context(), dir), "the next run recovers")
			require.Len(t, names(t, dir), 4)
		})
	}
	t.Logf("%d failing downloads: 0 wrong files, 0 leftovers, each next run recovers", len(cases))
}

func TestDownloadMNIST(t *testing.T) {
	m, _ := newMirror(t)
	dir := t.TempDir()
	// The mirror's files are not the real ones: the pinned sizes and digests must refuse them.
	err := DownloadMNIST(t.Context(), dir, Download{m.URL + "/mnist/", m.Client(), func(string, int64, int64) {}})
	require.ErrorIs(t, err, fetch.ErrSize)
	require.ErrorContains(t, err, "files: download mnist: ")
	require.Equal(t, map[string]int{mnistFiles[0].Name: 1}, m.requests)
	require.Empty(t, names(t, dir))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, DownloadMNIST(ctx, dir, Download{URL: m.URL, HTTP: m.Client()}), context.Canceled)

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, DownloadMNIST(t.Context(), file, Download{}))
}
