package install

import (
	"bytes"
	"errors"
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

// S41: no error of an installation has the user name, the password or the query of the index, each of which may be a
// token.
func TestS41_errorsHideTokens(t *testing.T) {
	one := newToy(t, "1.0", noise(1, 1000))
	x := serve(t, one)
	for name, status := range map[string]int{"a page without the link": 200, "a refusal": 403} {
		o := x.options(t.TempDir(), one)
		o.HTTP = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			require.Equal(t, "hunter1", r.URL.User.Username(), "the request has it")
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
		})}
		for _, address := range []string{"https://hunter1@host/simple?token=hunter2", "https://hunter1:hunter3@host/simple#hunter4"} {
			o.IndexURL = address
			_, err := Install(t.Context(), "toy", o)
			require.ErrorContains(t, err, "https://host/simple", name)
			for ; err != nil; err = errors.Unwrap(err) {
				require.NotContains(t, err.Error(), "hunter", name)
			}
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
