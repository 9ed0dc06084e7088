package xla_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/xla"
)

// offline counts and blocks network requests.
func offline(t *testing.T) *atomic.Int64 {
	t.Helper()
	var calls atomic.Int64
	refuse := func(context.Context, string, string) (net.Conn, error) {
		calls.Add(1)
		return nil, errors.New("no network in this test")
	}
	transport, resolver := http.DefaultTransport, net.DefaultResolver
	http.DefaultTransport = &http.Transport{DialContext: refuse}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: refuse}
	t.Cleanup(func() { http.DefaultTransport, net.DefaultResolver = transport, resolver })
	return &calls
}

// emptyHome sets an empty home folder and no search path.
func emptyHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("LAZO_HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	return home
}

func TestFindOrder(t *testing.T) {
	emptyHome(t)
	first, second := t.TempDir(), t.TempDir()
	touch := func(dir, name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("never loaded"), 0o600))
		resolved, err := filepath.EvalSymlinks(path)
		require.NoError(t, err)
		return resolved
	}
	link := filepath.Join(first, "pjrt_plugin_linked.so")
	target := touch(second, "target.so")
	require.NoError(t, os.Symlink(target, link))
	rows := []struct{ name, plugin, want string }{
		{"go-xla's name", "cpu", touch(first, "pjrt_c_api_cpu_v0.83.1_plugin.so")},
		{"JAX's CUDA name", "cuda", touch(second, "xla_cuda_plugin.so")},
		{"dashes", "one", touch(first, "pjrt-plugin-one.so")},
		{"the wheel's name", "two", touch(first, "xla_two_pjrt.so")},
		{"plain name", "three", touch(second, "pjrt_c_api_three_plugin.so")},
		{"a version of the CPU's", "cpu106", touch(second, "pjrt_plugin_cpu106.so")},
		{"libtpu", "tpu", touch(second, "libtpu.so")},
		{"symbolic link", "linked", target},
		{"path", target, target},
		{"not a longer name", "thre", ""},
		{"not a path in a name", "../cpu", ""},
		{"not a pattern", "*", ""},
		{"empty", "", ""},
	}
	touch(second, "xla_cpu_pjrt.so") // the first folder wins
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", first+":"+second)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			found, err := xla.Find(row.plugin)
			if row.want == "" {
				require.Error(t, err)
				assert.NotErrorIs(t, err, xla.ErrPluginDamaged)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.want, found.Path)
			if row.plugin == "cpu106" {
				assert.Equal(t, xla.CPU, found.Kind, "the number is a version")
			}
		})
	}
}

// S51: PJRT_PLUGIN_LIBRARY_PATH finds each library that `lazo install` installs by its file's name.
func TestS51_searchPathFindsInstalledNames(t *testing.T) {
	emptyHome(t)
	table, err := install.Table()
	require.NoError(t, err)
	found := 0
	for _, w := range table {
		if w.API == "" {
			continue
		}
		dir := t.TempDir()
		path := filepath.Join(dir, filepath.Base(w.Library))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", dir)
		name, _, _ := strings.Cut(strings.TrimRight(w.Kind, "0123456789"), "_") // "cpu106", "cuda_compile"
		p, err := xla.Find(name)
		require.NoError(t, err, w.Kind)
		require.Equal(t, path, p.Path)
		found++
	}
	require.Greater(t, found, 5)
}

// S51: programs find in $LAZO_HOME what `lazo install` installs there.
func TestS51_lazoHome(t *testing.T) {
	installed, err := install.DefaultRoot()
	require.NoError(t, err)
	emptyHome(t)
	_, err = xla.Find(xla.CPU)
	require.ErrorIs(t, err, xla.ErrPluginNotFound)
	t.Setenv("LAZO_HOME", installed)
	p, err := xla.Find(xla.CPU)
	require.NoError(t, err)
	require.Equal(t, "lazo install", p.Source)
	require.True(t, strings.HasPrefix(p.Path, installed), p.Path)
}

func TestOpenRefuses(t *testing.T) {
	emptyHome(t)
	dir := t.TempDir()
	file := func(folder, name string, mode os.FileMode) string {
		folder = filepath.Join(dir, folder)
		require.NoError(t, os.MkdirAll(folder, 0o750))
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	open := file("open", "plugin.so", 0o600)
	require.NoError(t, os.Chmod(filepath.Dir(open), 0o777)) // what is tested
	sticky := file("sticky", "plugin.so", 0o600)
	require.NoError(t, os.Chmod(filepath.Dir(sticky), 0o777|os.ModeSticky))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	rows := []struct {
		name, plugin string
		ctx          context.Context // a row
		opts         []xla.Option
		want         error
		text         string
	}{
		{"damaged file", file("a", "plugin.so", 0o600), t.Context(), nil, xla.ErrPluginDamaged, "4 bytes"},
		{"world-writable file", file("b", "plugin.so", 0o666), t.Context(), nil, xla.ErrPluginInsecure, "chmod o-w"},
		{"world-writable folder", open, t.Context(), nil, xla.ErrPluginInsecure, filepath.Dir(open)},
		{"sticky folder is fine", sticky, t.Context(), nil, xla.ErrPluginDamaged, ""},
		{"context", "cpu", cancelled, nil, context.Canceled, ""},
		{"option type", "go", t.Context(), []xla.Option{xla.ClientOption("a", []string{"b"})}, nil, "type []string"},
		{"option range", "go", t.Context(), []xla.Option{xla.ClientOption("a", 1e300)}, nil, "float32"},
		{"option for go", "go", t.Context(), []xla.Option{xla.ClientOption("a", 1)}, nil, "no client options"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			runtime, err := xla.Open(row.ctx, row.plugin, row.opts...)
			require.Error(t, err)
			assert.Nil(t, runtime)
			if row.want != nil {
				require.ErrorIs(t, err, row.want)
			}
			assert.Contains(t, err.Error(), row.text)
		})
	}
}
