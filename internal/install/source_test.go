package install

import (
	"bytes"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The given client asks the public index, and an answer that is not an index is shortened in the error.
func TestR51_publicIndexByTheClientGiven(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 1000))
	x := serve(t, one)
	var asked []string
	answer := ""
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Scheme+" "+r.URL.Path)
		body := io.NopCloser(strings.NewReader(answer))
		if path.Base(r.URL.Path) == one.File {
			body = io.NopCloser(bytes.NewReader(one.wheel))
		}
		return &http.Response{StatusCode: 200, Body: body, ContentLength: -1, Request: r}, nil
	})}
	o := x.options(t.TempDir(), one)
	o.IndexURL, o.HTTP = "", client
	answer = `{"info": ` + strings.Repeat("x", 1<<20)
	_, err := Install(t.Context(), "toy", o)
	require.Error(t, err)
	require.Less(t, len(err.Error()), 1000)
	answer = `{"releases": {"1.0": [{"filename": "` + one.File + `", "url": "` + x.URL + "/files/" + one.File + `"}]}}`
	_, err = Install(t.Context(), "toy", o)
	require.NoError(t, err)
	require.Equal(t, []string{"https /pypi/toy-pjrt/json", "https /pypi/toy-pjrt/json", "https /files/" + one.File}, asked)

	o.IndexURL, o.Force = "https://user:hunter2/x@host:port/simple", true
	_, err = Install(t.Context(), "toy", o)
	require.ErrorContains(t, err, "--index-url")
	require.NotContains(t, err.Error(), "hunter")
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
