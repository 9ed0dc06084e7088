package mlflow

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A refusal of MLflow is final, a proxy's is not; no error has the password.
func TestClient_errors(t *testing.T) {
	status, body := 200, `{}`
	var seen *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	u, err := url.Parse(server.URL + "/below")
	require.NoError(t, err)
	u.User = url.UserPassword("me", "secret")
	c := newClient(Run{Timeout: time.Minute}, u)
	require.NoError(t, c.post(t.Context(), "runs/update", map[string]int{"a": 1}, nil))
	require.Equal(t, "/below/api/2.0/mlflow/runs/update", seen.URL.Path)
	user, password, _ := seen.BasicAuth()
	require.Equal(t, [2]string{"me", "secret"}, [2]string{user, password})
	for _, row := range []struct {
		status int
		body   string
		final  bool
		want   string
	}{
		{400, `{"error_code": "INVALID_PARAMETER_VALUE", "message": "no"}`, true, "the status is 400: INVALID_PARAMETER_VALUE: no"},
		{429, `{"error_code": "REQUEST_LIMIT_EXCEEDED"}`, false, "the status is 429: REQUEST_LIMIT_EXCEEDED"},
		{502, "<html>", false, "the status is 502"},
		{404, "<html>", false, "the status is 404"},
		{302, "", false, "the status is 302"},
		{200, "<html>", false, "the answer is not MLflow's"},
	} {
		status, body = row.status, row.body
		err := c.post(t.Context(), "runs/update", map[string]int{"a": 1}, nil)
		require.ErrorContains(t, err, u.Host+": api/2.0/mlflow/runs/update: "+row.want)
		require.NotContains(t, err.Error(), "secret")
		refused := (*refusedError)(nil)
		require.Equal(t, row.final, errors.As(err, &refused), "%d", row.status)
	}
	c = newClient(Run{Timeout: time.Minute, Token: "t"}, u)
	status, body = 200, "{}"
	require.NoError(t, c.post(t.Context(), "runs/update", nil, nil))
	require.Equal(t, "Bearer t", seen.Header.Get("Authorization"), "a token goes before the address's password")
}
