package board

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type reader struct {
	t  *testing.T
	in *bufio.Scanner
}

func read(t *testing.T, address string) reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, "GET", address+"/events", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { cancel(); _ = answer.Body.Close() })
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	in := bufio.NewScanner(answer.Body)
	in.Buffer(nil, 1<<20)
	return reader{t, in}
}

func (r reader) next() (name, data string) {
	r.t.Helper()
	for r.in.Scan() {
		line := r.in.Text()
		if v, is := strings.CutPrefix(line, "event: "); is {
			name = v
		}
		if v, is := strings.CutPrefix(line, "data: "); is {
			return name, v
		}
	}
	return "", ""
}

func (r reader) runs() (e runsEvent) {
	r.t.Helper()
	name, data := r.next()
	require.Equal(r.t, "runs", name)
	require.NoError(r.t, json.Unmarshal([]byte(data), &e))
	return e
}

// An event has the runs that changed, the lines that are new, and the runs that are gone.
func TestEvents(t *testing.T) {
	store := NewStore()
	first, second := store.Add("first"), store.Add("second")
	first.Log("one\n")
	server := httptest.NewServer(store.Handler(Access{}))
	defer server.Close()
	page := read(t, server.URL)
	e := page.runs()
	require.Len(t, e.Runs, 2)
	name, data := page.next()
	require.Equal(t, "lines", name)
	require.Contains(t, data, `"text":"one"`)

	second.Row("rows", at(3, 1), []string{"losses.loss"}, []float64{2})
	e = page.runs()
	require.Len(t, e.Runs, 1)
	require.Equal(t, "second", e.Runs[0].Name)
	require.Equal(t, int64(3), e.Runs[0].Steps)
	first.Log("two\n")
	page.runs()
	_, data = page.next()
	require.Contains(t, data, `"text":"two"`)
	require.NotContains(t, data, `"text":"one"`)
	first.Remove()
	require.Equal(t, []int{1}, page.runs().Gone)

	// Another page begins with all.
	e = read(t, server.URL).runs()
	require.Len(t, e.Runs, 1)
	require.Equal(t, "second", e.Runs[0].Name)

	second.Describe(func(i *Info) { i.Status, i.Why = "ended", "data ended" })
	store.End()
	require.Equal(t, "data ended", page.runs().Runs[0].Why)
	name, _ = page.next()
	require.Empty(t, name, "the events end")
}

// Pages that do not read: no call of the store waits for them, and it keeps nothing for them.
func TestEvents_pageThatDoesNotRead(t *testing.T) {
	store := NewStore()
	r := store.Add("run")
	r.Log(strings.Repeat(strings.Repeat("x", 1000)+"\n", mostLines))
	server := httptest.NewServer(store.Handler(Access{}))
	defer server.CloseClientConnections()
	for range 3 {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte("GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
		require.NoError(t, err)
	}
	const rows = 20_000
	for i := range rows {
		r.Row("rows", at(int64(i+1), 0), []string{"losses.loss"}, []float64{1})
		if i%100 == 0 {
			r.Log(strings.Repeat("y", 1000) + "\n")
		}
	}
	require.Len(t, r.valuesOf("losses.loss"), rows)
	require.Len(t, r.lines, mostLines)
}
