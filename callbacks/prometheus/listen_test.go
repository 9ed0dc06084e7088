package prometheus

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// S52: metrics, health and profiles, for this machine alone unless another address is named.
func TestListen(t *testing.T) {
	m := New()
	for address, loopback := range map[string]bool{":0": true, "127.0.0.1:0": true, "0.0.0.0:0": false} {
		s, err := m.Listen(address)
		require.NoError(t, err)
		require.Equal(t, loopback, s.Addr().(*net.TCPAddr).IP.IsLoopback(), address)
		if loopback {
			for _, path := range []string{"/metrics", "/health", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine"} {
				answer, err := http.Get("http://" + s.Addr().String() + path)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, answer.Body)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				require.Equal(t, http.StatusOK, answer.StatusCode, path)
			}
		}
		require.NoError(t, s.Close())
	}
	_, err := m.Listen("nowhere")
	require.EqualError(t, err, `prometheus: listen: the address is "nowhere": expected HOST:PORT`)
	s, err := m.Listen(":0")
	require.NoError(t, err)
	_, err = m.Listen(s.Addr().String())
	require.ErrorContains(t, err, "prometheus: listen tcp "+s.Addr().String())
	require.NoError(t, s.Close())
}

// The health page knows a run that hangs.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New()
		page := func(query string) (int, string) {
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/health"+query, nil))
			return w.Code, w.Body.String()
		}
		code, text := page("?idle=1s")
		require.Equal(t, 200, code)
		require.JSONEq(t, `{"runs": []}`, text)
		a, err := m.Training("digits", loop.EachStep).Start(loop.Beginning{})
		require.NoError(t, err)
		time.Sleep(90 * time.Second)
		code, text = page("")
		require.Equal(t, 200, code)
		require.JSONEq(t, `{"runs": [{"run": "digits", "running": true, "step": 0, "idle_seconds": 90}]}`, text)
		code, _ = page("?idle=2m")
		require.Equal(t, 200, code)
		code, _ = page("?idle=1m")
		require.Equal(t, 503, code)
		code, _ = page("?idle=later")
		require.Equal(t, 400, code)
		require.NoError(t, a.End(t.Context(), loop.Ending{}))
		code, _ = page("?idle=1m")
		require.Equal(t, 200, code, "it has ended")
	})
}
