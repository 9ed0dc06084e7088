package fetch

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func blobOf(data string) string {
	digest := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data))
	return hex.EncodeToString(digest[:])
}

// A download that breaks off is continued: bytes that came are not requested again, and the digest is of all.
func TestResume(t *testing.T) {
	content := strings.Repeat("0123456789", 100)
	var ranges []string
	most, whole := 400, false
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		require.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		at := 0
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at); err == nil && !whole {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-999/1000", at))
			w.Header().Set("Content-Length", fmt.Sprint(1000-at))
			w.WriteHeader(http.StatusPartialContent)
		} else {
			at = 0
			w.Header().Set("Content-Length", "1000")
		}
		io.WriteString(w, content[at:min(at+most, 1000)])
	})
	for _, f := range []File{{SHA256: sum(content)}, {Blob: blobOf(content)}} {
		f.URL, f.Size, f.Token = server.URL+"/x", 1000, "secret"
		path := filepath.Join(t.TempDir(), "x")
		resume := func() error { return client.Resume(t.Context(), f, path) }
		ranges, most, whole = nil, 400, false
		require.ErrorIs(t, resume(), ErrSize)
		require.Equal(t, []string{"x.incomplete"}, filesIn(t, filepath.Dir(path)))
		require.ErrorIs(t, resume(), ErrSize)
		require.NoError(t, resume())
		require.NoError(t, resume(), "it is there")
		require.Equal(t, []string{"", "bytes=400-", "bytes=800-"}, ranges)
		require.NoError(t, VerifyFile(path, 1000, sum(content)))
		require.Equal(t, []string{"x"}, filesIn(t, filepath.Dir(path)))

		// Bytes that came from elsewhere are found at the end, and all are requested again.
		require.NoError(t, os.Remove(path))
		most = 1000
		require.NoError(t, os.WriteFile(path+incomplete, []byte("wrong"), 0o600))
		require.ErrorIs(t, resume(), ErrDigest)
		require.NoError(t, resume())
		require.Equal(t, []string{"bytes=5-", ""}, ranges[3:])

		// A whole file that was not renamed needs no request.
		require.NoError(t, os.Rename(path, path+incomplete))
		require.NoError(t, resume())
		require.Len(t, ranges, 5)

		// Other bytes of the size are replaced, and a link is not followed.
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 1000)), 0o600))
		require.NoError(t, resume())
		require.Len(t, ranges, 6)
		require.NoError(t, VerifyFile(path, 1000, sum(content)))
		ranges = ranges[:5]
		require.NoError(t, os.Remove(path))
		outside := filepath.Join(t.TempDir(), "outside")
		require.NoError(t, os.WriteFile(outside, []byte("mine"), 0o600))
		require.NoError(t, os.Symlink(outside, path+incomplete))
		require.ErrorContains(t, resume(), "is a symbolic link, expected a file")
		mine, err := os.ReadFile(outside)
		require.NoError(t, err)
		require.Equal(t, "mine", string(mine))
		require.NoError(t, os.Remove(path+incomplete))

		// A server without ranges sends all.
		require.NoError(t, os.WriteFile(path+incomplete, []byte(content[:9]), 0o600))
		whole = true
		require.NoError(t, resume())
		require.Equal(t, []string{"bytes=9-"}, ranges[5:])
		require.NoError(t, VerifyFile(path, 1000, sum(content)))
	}
}

// A token goes to no other host, subdomain or port. It goes to the same one.
func TestResume_tokenAndRedirects(t *testing.T) {
	var asked []string
	other, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+r.Header.Get("Authorization"))
		io.WriteString(w, "content")
	})
	to := ""
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/x" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		asked = append(asked, r.Header.Get("Authorization"))
		io.WriteString(w, "content")
	})
	transport := client.HTTP.Transport.(*http.Transport)
	transport.TLSClientConfig.InsecureSkipVerify = true // its certificate is for another name
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}
	_, port, err := net.SplitHostPort(other.Listener.Addr().String())
	require.NoError(t, err)
	_, own, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for _, to = range []string{"https://other.test:" + port, "https://evil.hub.test:" + port, "https://hub.test:" + port, "/y"} {
		require.NoError(t, client.Resume(t.Context(), File{URL: "https://hub.test:" + own + "/x", Size: 7, SHA256: sum("content"), Token: "secret"}, filepath.Join(t.TempDir(), "x")))
	}
	require.Equal(t, []string{"other.test:" + port, "evil.hub.test:" + port, "hub.test:" + port, "Bearer secret"}, asked)
}

// Several that download to one path request it once, and one that waits ends with its context.
func TestResume_together(t *testing.T) {
	var requests, together sync.WaitGroup
	requests.Add(1)
	begun := make(chan struct{})
	server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(begun) // panics for a second request
		requests.Wait()
		io.WriteString(w, "content")
	})
	f := File{URL: server.URL, Size: 7, SHA256: sum("content")}
	path := filepath.Join(t.TempDir(), "x")
	for range 4 {
		together.Go(func() {
			if err := client.Resume(t.Context(), f, path); err != nil {
				t.Error(err)
			}
		})
	}
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, client.Resume(ctx, f, path), "another process downloads it")
	requests.Done()
	together.Wait()
}
