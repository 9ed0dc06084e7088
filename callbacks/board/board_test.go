package board

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// page is a client as the page in a browser.
type page struct {
	t *testing.T
	b *Board
}

type runState struct {
	Name, Status, Why string
	Steps             int64
	Until             string
	Progress          float64
	Rate              *float64
	Settings          map[string]string
	Actions           []string
	Series            []struct{ Name, Value string }
	Shown             int
}

func (p page) address() string {
	u, err := url.Parse(p.b.URL())
	require.NoError(p.t, err)
	return "http://" + u.Host + "/"
}

// event returns the content of the first event of this name.
func (p page) event(name string) string {
	r, err := http.NewRequestWithContext(p.t.Context(), "GET", p.address()+"events", nil)
	require.NoError(p.t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p.t, err)
	defer answer.Body.Close()
	in := bufio.NewScanner(answer.Body)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if in.Text() == "event: "+name && in.Scan() {
			return in.Text()[len("data: "):]
		}
	}
	p.t.Errorf("no event %s", name)
	return ""
}

func (p page) runs() []runState {
	var e struct{ Runs []runState }
	require.NoError(p.t, json.Unmarshal([]byte(p.event("runs")), &e))
	return e.Runs
}

func (p page) lines() string { return p.event("lines") }

func (p page) control(action string, value float64, status int) {
	_, token, _ := strings.Cut(p.b.URL(), "#token=")
	body, err := json.Marshal(map[string]any{"run": 1, "action": action, "value": value})
	if err != nil {
		p.t.Error(err)
		return
	}
	r, err := http.NewRequest("POST", p.address()+"control", bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Error(err)
		return
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != status {
		p.t.Errorf("%s: %d: %s", action, answer.StatusCode, text)
	}
}

func TestServe_refuses(t *testing.T) {
	_, err := Serve("9465", Options{})
	require.ErrorContains(t, err, "board: the address is \"9465\", expected HOST:PORT")
	_, err = Serve("127.0.0.1:0", Options{Token: "short"})
	require.ErrorContains(t, err, "the token has 5 characters, expected at least 16")
}

// At an address of the network, reading needs the token.
func TestServe_network(t *testing.T) {
	b, err := Serve("0.0.0.0:0", Options{Token: "0123456789abcdef"})
	require.NoError(t, err)
	defer b.Close()
	u, err := url.Parse(b.URL())
	require.NoError(t, err)
	require.Equal(t, "token=0123456789abcdef", u.Fragment)
	for token, status := range map[string]int{"": http.StatusUnauthorized, "0123456789abcdef": http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1:"+u.Port()+"/samples?run=1", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, status, answer.StatusCode)
	}
}

func TestBoard_none(t *testing.T) {
	var b *Board
	require.Empty(t, b.URL())
	n, err := b.Write([]byte("line\n"))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.NoError(t, b.Close())
	_, err = steps(nil).Run(t.Context(), &training{}, numbers(2), b.Training("run", everyStep))
	require.ErrorContains(t, err, "rank 0 has no board")
}

// Close ends the events of open pages, and may be called again.
func TestBoard_close(t *testing.T) {
	b, err := Serve("127.0.0.1:0", Options{})
	require.NoError(t, err)
	answer, err := http.Get(page{t, b}.address() + "events")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.NoError(t, b.Close())
	_, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, b.Close())
}
