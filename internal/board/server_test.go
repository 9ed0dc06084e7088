package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const secret = "0123456789abcdef"

type ask struct {
	method, path, body, host string
	header                   map[string]string
}

func (a ask) of(h http.Handler) (status int, body string, header http.Header) {
	r := httptest.NewRequest(a.method, "http://127.0.0.1:9465"+a.path, strings.NewReader(a.body))
	if a.host != "" {
		r.Host = a.host
	}
	for k, v := range a.header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(text), w.Result().Header
}

const seriesPath = "/series?q="

func seriesQuery(q string) string { return seriesPath + url.QueryEscape(q) }

func TestHandler_page(t *testing.T) {
	h := NewStore().Handler(Access{})
	for path, part := range map[string]string{"/": "<title>lazo board</title>", "/board.js": "use strict", "/board.css": "prefers-color-scheme", "/uPlot.iife.min.js": "uPlot", "/uPlot.min.css": ".uplot", "/uPlot.LICENSE": "MIT"} {
		status, body, header := ask{method: "GET", path: path}.of(h)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, body, part)
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
		require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, header.Get("Content-Security-Policy"), "unsafe")
		require.Empty(t, header.Get("Access-Control-Allow-Origin"))
		require.Empty(t, header.Values("Set-Cookie"))
	}
	for _, path := range []string{"/page/board.js", "/README.md", "/other"} {
		status, _, _ := ask{method: "GET", path: path}.of(h)
		require.Equal(t, http.StatusNotFound, status, path)
	}
}

// A name that another server gave this machine's address (DNS rebinding), and a page of another server.
func TestHandler_refusesForeignPages(t *testing.T) {
	store := NewStore()
	done := 0
	store.Add("run").Describe(func(i *Info) {
		i.Actions, i.Control = []string{"stop"}, func(string, float64) error { done++; return nil }
	})
	h := store.Handler(Access{Token: secret, Hosts: []string{"trainer.example"}})
	control := ask{method: "POST", path: "/control", body: `{"run":1,"action":"stop"}`, header: map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + secret}}
	with := func(a ask, host string, header map[string]string) ask {
		all := map[string]string{}
		for k, v := range a.header {
			all[k] = v
		}
		for k, v := range header {
			all[k] = v
		}
		a.host, a.header = host, all
		return a
	}
	for _, a := range []ask{control, {method: "GET", path: seriesQuery(`{"x":"step","width":100}`)}, {method: "GET", path: "/"}} {
		good := map[string]int{"GET": http.StatusOK, "POST": http.StatusNoContent}[a.method]
		for _, host := range []string{"127.0.0.1:9465", "localhost:1", "LOCALHOST", "[::1]:9465", "[::1]", "192.168.1.5:80", "trainer.example:9465", "Trainer.Example"} {
			status, body, _ := with(a, host, map[string]string{"Origin": "http://" + host}).of(h)
			require.Equal(t, good, status, "%s %s %s", host, a.path, body)
		}
		before := done
		for _, host := range []string{"evil.example", "evil.example:9465", "127.0.0.1.evil.example:9465", "localhost.evil.example", "0x7f.1"} {
			status, _, _ := with(a, host, map[string]string{"Origin": "http://" + host}).of(h)
			require.Equal(t, http.StatusForbidden, status, host)
		}
		for _, header := range []map[string]string{{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9466"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}} {
			status, _, _ := with(a, "127.0.0.1:9465", header).of(h)
			require.Equal(t, http.StatusForbidden, status, "%v", header)
		}
		require.Equal(t, before, done)
	}
	// A link to the page is no request of the other page.
	status, _, _ := ask{method: "GET", path: "/", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}}.of(h)
	require.Equal(t, http.StatusOK, status)
}

func TestHandler_token(t *testing.T) {
	store := NewStore()
	done := 0
	store.Add("run").Describe(func(i *Info) {
		i.Actions, i.Control = []string{"stop"}, func(string, float64) error { done++; return nil }
	})
	read := ask{method: "GET", path: "/samples?run=1"}
	change := ask{method: "POST", path: "/control", body: `{"run":1,"action":"stop"}`}
	for _, given := range []string{"", "Bearer ", "Bearer wrong", "Basic " + secret, secret, "Bearer " + secret + "x", "bearer " + secret} {
		for _, reading := range []bool{false, true} {
			h := store.Handler(Access{Token: secret, Reading: reading})
			header := map[string]string{"Content-Type": "application/json", "Authorization": given}
			change.header, read.header = header, header
			status, body, _ := change.of(h)
			require.Equal(t, http.StatusUnauthorized, status, given)
			require.NotContains(t, body, secret)
			status, _, _ = read.of(h)
			require.Equal(t, map[bool]int{false: http.StatusOK, true: http.StatusUnauthorized}[reading], status, given)
			status, _, _ = ask{method: "GET", path: "/"}.of(h)
			require.Equal(t, http.StatusOK, status, "the page itself has no data")
		}
	}
	require.Zero(t, done)
	header := map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + secret}
	change.header, read.header = header, header
	h := store.Handler(Access{Token: secret, Reading: true})
	status, _, _ := change.of(h)
	require.Equal(t, http.StatusNoContent, status)
	status, _, _ = read.of(h)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 1, done)
	// Without a token nothing can be changed.
	header["Authorization"] = "Bearer "
	status, _, _ = change.of(store.Handler(Access{}))
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotEqual(t, NewToken(), NewToken())
}

func TestHandler_control(t *testing.T) {
	store := NewStore()
	var got []string
	store.Add("live").Describe(func(i *Info) {
		i.Actions, i.Control = []string{"stop", "rate"}, func(action string, v float64) error {
			got = append(got, fmt.Sprint(action, v))
			if v > 1 {
				return errors.New("too high")
			}
			return nil
		}
	})
	store.Add("recorded")
	h := store.Handler(Access{Token: secret})
	do := func(kind, body string) (int, string) {
		status, text, _ := ask{method: "POST", path: "/control", body: body, header: map[string]string{"Content-Type": kind, "Authorization": "Bearer " + secret}}.of(h)
		return status, text
	}
	const form = "application/json"
	for _, c := range []struct {
		kind, body string
		status     int
		says       string
	}{
		{"text/plain", `{"run":1,"action":"stop"}`, http.StatusUnsupportedMediaType, "application/json"},
		{form, `{"run":1,"action":"stop","more":1}`, http.StatusBadRequest, "more"},
		{form, `{`, http.StatusBadRequest, "EOF"},
		{form, `{"run":1,"action":"` + strings.Repeat("x", 5000) + `"}`, http.StatusBadRequest, "too large"},
		{form, `{"run":7,"action":"stop"}`, http.StatusConflict, "no run 7"},
		{form, `{"run":2,"action":"stop"}`, http.StatusConflict, "callbacks/board"},
		{form, `{"run":1,"action":"save"}`, http.StatusConflict, "expected one of stop, rate"},
		{form, `{"run":1,"action":"rate","value":2}`, http.StatusConflict, "too high"},
		{form + "; charset=utf-8", `{"run":1,"action":"rate","value":0.5}`, http.StatusNoContent, ""},
	} {
		status, text := do(c.kind, c.body)
		require.Equal(t, c.status, status, c.body)
		require.Contains(t, text, c.says)
	}
	require.Equal(t, []string{"rate2", "rate0.5"}, got)
	status, _, _ := ask{method: "GET", path: "/control"}.of(h)
	require.Equal(t, http.StatusMethodNotAllowed, status)
}

type gotColumns struct {
	Bucket             float64
	Rewound            int
	More               bool
	X, Mean, Low, High []*float64
}

func columnsOf(t *testing.T, h http.Handler, q string) (all []gotColumns) {
	t.Helper()
	status, body, _ := ask{method: "GET", path: seriesQuery(q)}.of(h)
	require.Equal(t, http.StatusOK, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	return all
}

// A page that has columns gets those from the last bucket on, unless earlier ones have changed.
func TestHandler_series(t *testing.T) {
	store := NewStore()
	r := store.Add("run")
	add := func(from, to int64) {
		for s := from; s <= to; s++ {
			r.Row("rows", at(s, float64(s)), []string{"losses.loss"}, []float64{float64(s % 10)})
		}
	}
	add(1, 10_000)
	h := store.Handler(Access{})
	all := columnsOf(t, h, `{"x":"step","width":500,"series":[{"run":1,"name":"losses.loss"},{"run":1,"name":"none"},{"run":9,"name":"losses.loss"}]}`)
	require.Len(t, all, 3)
	require.Equal(t, 32.0, all[0].Bucket)
	require.False(t, all[0].More)
	require.Len(t, all[0].X, 313)
	require.Empty(t, all[1].X)
	require.Empty(t, all[2].X)

	add(10_001, 10_100)
	more := func() gotColumns {
		return columnsOf(t, h, fmt.Sprintf(`{"x":"step","width":500,"series":[{"run":1,"name":"losses.loss","bucket":32,"rewound":0,"since":%g}]}`, *all[0].X[312]))[0]
	}
	got := more()
	require.True(t, got.More)
	require.Len(t, got.X, 4, "the last bucket again, and three new ones")
	require.Equal(t, 0.0, *got.Low[0])
	add(9_000, 9_001)
	got = more()
	require.False(t, got.More)
	require.Equal(t, 1, got.Rewound)
	require.Len(t, got.X, 282)

	near := columnsOf(t, h, `{"x":"step","width":500,"from":100,"to":200,"series":[{"run":1,"name":"losses.loss"}]}`)[0]
	require.Zero(t, near.Bucket)
	require.Len(t, near.X, 101)
	byTime := columnsOf(t, h, `{"x":"time","width":500,"from":100,"to":200,"series":[{"run":1,"name":"losses.loss"}]}`)[0]
	require.Len(t, byTime.X, 101)
	for _, q := range []string{``, `{}`, `{"x":"step"}`, `{"x":"epoch","width":5}`, `{"x":"step","width":100000}`, `{"x":"step","width":-1}`} {
		status, _, _ := ask{method: "GET", path: seriesQuery(q)}.of(h)
		require.Equal(t, http.StatusBadRequest, status, q)
	}
}

func TestHandler_samples(t *testing.T) {
	store := NewStore()
	r := store.Add("run")
	r.Show(Sample{Step: 3, Name: "outputs.text", Text: "hello"})
	h := store.Handler(Access{})
	_, body, _ := ask{method: "GET", path: "/samples?run=1"}.of(h)
	require.JSONEq(t, `[{"Step":3,"Name":"outputs.text","Text":"hello","PNG":null}]`, body)
	_, body, _ = ask{method: "GET", path: "/samples?run=2"}.of(h)
	require.JSONEq(t, `[]`, body)
	status, _, _ := ask{method: "GET", path: "/samples?run=x"}.of(h)
	require.Equal(t, http.StatusBadRequest, status)
}

func TestListen(t *testing.T) {
	for address, open := range map[string]bool{":0": false, "127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true} {
		l, got, err := Listen(address)
		require.NoError(t, err)
		require.Equal(t, open, got, address)
		require.NoError(t, l.Close())
	}
	_, _, err := Listen("9465")
	require.ErrorContains(t, err, "expected HOST:PORT")
}
