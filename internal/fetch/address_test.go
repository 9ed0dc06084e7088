package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No error has a password in it, however the address is broken, nor more of a server's words than fit on a screen.
func TestR51_errorsHideSecretsAndAreShort(t *testing.T) {
	for _, address := range []string{
		"http://user:hunter2@host/a?token=hunter3", "https://user:hunter2@host:port/a", "https://user:hunter2/x@host/a", "https://user:hunter2@ho st/a",
		"https://user:hunter2%zz@host/a", "//user:hunter2@host/a", "user:hunter2@host/a", "https://user:hunter2@[::1/a", "https://user:hunter2@127.0.0.1:1/a?token=hunter3",
		"https://hunter1@127.0.0.1:1/a", "https://hunter1:@127.0.0.1:1/a?hunter2#hunter3", // S41
	} {
		_, err := Client{}.Download(t.Context(), File{URL: address, SHA256: sum("")}, t.TempDir())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter")
		_, err = Client{}.Get(t.Context(), address, "", 1)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter")
		for ; err != nil; err = errors.Unwrap(err) { // nor what is logged of a wrapped one
			require.NotContains(t, err.Error(), "hunter")
		}
	}
	long := strings.Repeat("long\x1b[2J", 100_000)
	for name, handler := range map[string]func(net.Conn){
		"status":   func(c net.Conn) { fmt.Fprintf(c, "HTTP/1.1 404 %s\r\n\r\n", long) },
		"protocol": func(c net.Conn) { fmt.Fprintf(c, "HELLO %s\r\n\r\n", long) },
		"redirect": func(c net.Conn) { fmt.Fprintf(c, "HTTP/1.1 302 Found\r\nLocation: https://host:%s/\r\n\r\n", long) },
		"length":   func(c net.Conn) { fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", long) },
	} {
		server, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				handler(c)
				c.Close()
			}
		})
		_, err := client.Download(t.Context(), File{URL: server.URL + "/" + strings.Repeat("long", 10_000), SHA256: sum("")}, t.TempDir())
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 2000, name)
		require.NotContains(t, err.Error(), "\x1b", name)
	}
}
