package fetch

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sum(data string) string {
	digest := sha256.Sum256([]byte(data))
	return hex.EncodeToString(digest[:])
}

// serve runs a TLS server for one test, and returns it with a client that trusts it.
func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client()
	t.Cleanup(client.CloseIdleConnections)
	return server, Client{HTTP: client}
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// answerWith returns the body without its length.
func answerWith(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, body)
	}
}

func TestF25_FailingDownloads(t *testing.T) {
	const content = "the right bytes, all of them"
	long := strings.Repeat("x", 1<<20)
	tests := []struct {
		name    string
		handler http.HandlerFunc
		change  func(c *Client, f *File)
		want    error
	}{
		{"wrong digest, same size", answerWith(strings.ToUpper(content)), nil, ErrDigest},
		{"wrong digest, size unknown", answerWith("other"), func(c *Client, f *File) { f.Size = 0 }, ErrDigest},
		{"404 page", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, nil, ErrStatus},
		{"404 with the right bytes", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404); io.WriteString(w, content) }, nil, ErrStatus},
		{"500 page", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, nil, ErrStatus},
		{"206 part", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(206); io.WriteString(w, content) }, nil, ErrStatus},
		{"204 nothing", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, nil, ErrStatus},
		{"short", answerWith(content[:9]), nil, ErrSize},
		{"short by its own account", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, content[:9]) }, nil, ErrSize},
		{"cut off", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			io.WriteString(w, content[:9])
		}, nil, ErrSize},
		{"empty", answerWith(""), nil, ErrSize},
		{"long by a byte", answerWith(content + "!"), nil, ErrSize},
		{"long by its own account", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, content+"!") }, nil, ErrSize},
		{"over the limit", answerWith(long), func(c *Client, f *File) { f.Size, c.Limit = 0, 1000 }, ErrSize},
		{"over the limit by its own account", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5000000000")
		}, func(c *Client, f *File) { f.Size = 0 }, ErrSize},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, long)
			}
		}, nil, ErrSize},
		{"no answer", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(c *Client, f *File) { c.IdleTimeout = 50 * time.Millisecond }, ErrTimeout},
		{"stalls", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, content[:9])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, func(c *Client, f *File) { c.IdleTimeout = 50 * time.Millisecond }, ErrTimeout},
		{"slow drip", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		}, func(c *Client, f *File) { f.Size, c.TotalTimeout = 0, 100*time.Millisecond }, ErrTimeout},
		{"redirect to http", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+"/", http.StatusFound)
		}, nil, ErrInsecure},
		{"redirect loop", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, nil, ErrRedirects},
		{"http address", answerWith(content), func(c *Client, f *File) { f.URL = strings.Replace(f.URL, "https", "http", 1) }, ErrInsecure},
		{"file address", answerWith(content), func(c *Client, f *File) { f.URL = "file:///etc/hostname" }, ErrInsecure},
		{"digest of 63 digits", answerWith(content), func(c *Client, f *File) { f.SHA256 = f.SHA256[1:] }, ErrDigest},
		{"no digest", answerWith(content), func(c *Client, f *File) { f.SHA256 = "" }, ErrDigest},
		{"digest in upper case", answerWith(content), func(c *Client, f *File) { f.SHA256 = strings.ToUpper(f.SHA256) }, ErrDigest},
		{"disk full", answerWith(content), func(c *Client, f *File) { c.create = createFull }, syscall.ENOSPC},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server, client := serve(t, test.handler)
			dir := t.TempDir()
			f := File{Name: "thing", URL: server.URL + "/a", Size: int64(len(content)), SHA256: sum(content)}
			if test.change != nil {
				test.change(&client, &f)
			}
			path, err := client.Download(t.Context(), f, dir)
			require.ErrorIs(t, err, test.want)
			require.Empty(t, path)
			require.Empty(t, filesIn(t, dir))
			require.Contains(t, err.Error(), "fetch: thing from ")
		})
	}
	t.Logf("F25: %d failing downloads refused, 0 files left", len(tests))
}

// createFull opens the kernel's own full disk by way of a link, so that what removes the file does not remove the
// device.
func createFull(dir string) (*os.File, error) {
	link := filepath.Join(dir, "full")
	if err := os.Symlink("/dev/full", link); err != nil {
		return nil, err
	}
	return os.OpenFile(link, os.O_WRONLY, 0)
}

func TestF25_UntrustedCertificate(t *testing.T) {
	server, _ := serve(t, answerWith("content"))
	dir := t.TempDir()
	_, err := Client{}.Download(t.Context(), File{URL: server.URL, SHA256: sum("content")}, dir)
	require.ErrorContains(t, err, "certificate")
	require.ErrorContains(t, err, "install the package ca-certificates") // S54
	require.Empty(t, filesIn(t, dir))
}

func TestDownload(t *testing.T) {
	content := strings.Repeat("0123456789", 200_000)
	for _, size := range []int64{0, int64(len(content))} {
		t.Run(fmt.Sprint("pinned size ", size), func(t *testing.T) {
			server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/old" {
					http.Redirect(w, r, "/new", http.StatusFound)
					return
				}
				io.WriteString(w, content)
			})
			var last, calls int64
			client.Progress = func(done, total int64) {
				require.Greater(t, done, last)
				require.Equal(t, size, total)
				last, calls = done, calls+1
			}
			path, err := client.Download(t.Context(), File{URL: server.URL + "/old", Size: size, SHA256: sum(content)}, t.TempDir())
			require.NoError(t, err)
			require.EqualValues(t, len(content), last)
			require.Greater(t, calls, int64(1))
			require.NoError(t, VerifyFile(path, int64(len(content)), sum(content)))
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
		})
	}
}

func TestContextEndsDownload(t *testing.T) {
	stop := errors.New("the user has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		cancel(stop)
		<-r.Context().Done()
	})
	dir := t.TempDir()
	_, err := client.Download(ctx, File{URL: server.URL, SHA256: sum("")}, dir)
	require.ErrorIs(t, err, stop)
	require.NotErrorIs(t, err, ErrTimeout)
	require.Empty(t, filesIn(t, dir))
}

// A page has at most limit bytes, whether the server says its length or not.
func TestGet(t *testing.T) {
	for _, handler := range []http.HandlerFunc{answerWith("a page"), func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "a page") }} {
		server, client := serve(t, handler)
		text, err := client.Get(t.Context(), server.URL, "", 6)
		require.NoError(t, err)
		require.Equal(t, "a page", string(text))
		_, err = client.Get(t.Context(), server.URL, "", 5)
		require.ErrorIs(t, err, ErrSize)
	}
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	client.TotalTimeout = 50 * time.Millisecond
	_, err := client.Get(t.Context(), server.URL, "", 5)
	require.ErrorIs(t, err, ErrTimeout)
	for _, answers := range []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}} {
		server, client := serve(t, answers)
		client.IdleTimeout = 50 * time.Millisecond
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := client.Get(ctx, server.URL, "", 5)
		stop()
		require.ErrorIs(t, err, ErrTimeout)
		require.ErrorContains(t, err, "no data for 50ms")
	}
}

func TestFolderMissing(t *testing.T) {
	server, client := serve(t, answerWith("x"))
	_, err := client.Download(t.Context(), File{URL: server.URL, SHA256: sum("x")}, filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOldLeftoversGo(t *testing.T) {
	var requests atomic.Int64
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) { requests.Add(1); io.WriteString(w, "x") })
	dir := t.TempDir()
	long := time.Now().Add(-2 * defaultTotalTimeout)
	for _, name := range []string{".fetch-1", ".fetch-2", "mine"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Chtimes(filepath.Join(dir, ".fetch-1"), long, long))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "mine"), long, long))
	path, err := client.Download(t.Context(), File{URL: server.URL, SHA256: sum("x")}, dir)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{".fetch-2", "mine", filepath.Base(path)}, filesIn(t, dir))
	require.EqualValues(t, 1, requests.Load())
}

// S56: a server that offers TLS 1.1 at most is refused, whose ciphers are broken.
func TestOldTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(answerWith("content"))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	server.StartTLS()
	t.Cleanup(server.Close)
	client := NewHTTPClient()
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	_, err := Client{HTTP: client}.Download(t.Context(), File{URL: server.URL, SHA256: sum("content")}, t.TempDir())
	require.ErrorContains(t, err, "tls: ")
	require.ErrorContains(t, err, "protocol version")
}

// S56: the digest is of the bytes that the server has, so it is asked to send them as they are. Otherwise net/http asks
// for gzip, and a file that the server compresses arrives uncompressed.
func TestAcceptEncoding(t *testing.T) {
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, "content")
			z.Close()
			return
		}
		io.WriteString(w, r.Header.Get("Accept-Encoding"))
	})
	_, err := client.Download(t.Context(), File{URL: server.URL, SHA256: sum("identity")}, t.TempDir())
	require.NoError(t, err)
}

// Whatever the server sends, in whatever portions: a file is returned exactly if it is the pinned one.
func TestDownloadLaw(t *testing.T) {
	var body []byte
	var portions []int
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		rest := body
		for _, n := range portions {
			n = min(n, len(rest))
			w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
		w.Write(rest)
	})
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 0, 4096)
		pinned := bytes.Draw(t, "pinned")
		body = rapid.OneOf(rapid.Just(pinned), bytes).Draw(t, "body")
		portions = rapid.SliceOfN(rapid.IntRange(1, 999), 0, 4).Draw(t, "portions")
		size := rapid.SampledFrom([]int64{0, int64(len(pinned))}).Draw(t, "size")
		path, err := client.Download(context.Background(), File{URL: server.URL, Size: size, SHA256: sum(string(pinned))}, dir)
		if string(body) != string(pinned) {
			if err == nil || path != "" {
				t.Fatalf("took %d bytes that are not the pinned ones", len(body))
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != string(pinned) {
			t.Fatal("the file differs from what was pinned")
		}
		os.Remove(path)
	})
	require.Empty(t, filesIn(t, dir))
}
