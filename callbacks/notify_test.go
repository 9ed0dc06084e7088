package callbacks_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// S52: the end of a run is reported with its reason, by a webhook and by a command, after the other callbacks have
// ended.
func TestNotify(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Authorization"), string(text))
	}))
	defer server.Close()
	gone := &loop.SignalError{Signal: syscall.SIGINT}
	for _, row := range []struct {
		name string
		at4  func(cancel context.CancelCauseFunc) error
		want string
	}{
		{"ends", nil, `{"text": "digits: data ended at step 9", "run": "digits", "reason": "data ended", "steps": 9, "samples": 9, "epochs": 0, "seconds": 0}`},
		{"fails", func(context.CancelCauseFunc) error { return errors.New("no memory") },
			`{"text": "digits: failed at step 4: loop: step 4: at 4 steps: no memory", "run": "digits", "reason": "failed",
				"error": "loop: step 4: at 4 steps: no memory", "steps": 4, "samples": 4, "epochs": 0, "seconds": 0}`},
		{"is interrupted", func(cancel context.CancelCauseFunc) error { cancel(gone); return nil },
			`{"text": "digits: cancelled at step 4: loop: step 4: cancelled: interrupt", "run": "digits", "reason": "cancelled",
				"error": "loop: step 4: cancelled: interrupt", "steps": 4, "samples": 4, "epochs": 0, "seconds": 0}`},
		{"stops", func(context.CancelCauseFunc) error { return loop.ErrStop },
			`{"text": "digits: stopped at step 4: loop: step 4: at 4 steps: stop", "run": "digits", "reason": "stopped", "steps": 4, "samples": 4, "epochs": 0, "seconds": 0}`},
		{"panics", func(context.CancelCauseFunc) error { panic("bad") }, `"reason": "failed"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got = nil
			file := filepath.Join(t.TempDir(), "report")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			watch := loop.Watch(loop.At(loop.Steps(4)), func(context.Context, loop.Report) error {
				if row.at4 != nil {
					return row.at4(cancel)
				}
				return nil
			})
			other := attend("other", loop.Never, func() loop.Attendant { return &attendant{end: func() { got = append(got, "other") }} })
			to := callbacks.Notification{Run: "digits", URL: server.URL + "/hook", Command: []string{"tee", file}, Timeout: time.Minute,
				Header: http.Header{"Authorization": {"Bearer s3cret"}}}
			_, _ = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(ctx, 0, numbers(9), callbacks.Notify(to), watch, other)
			require.Len(t, got, 3)
			require.Equal(t, []string{"other", "POST /hook application/json Bearer s3cret"}, got[:2])
			var report map[string]any
			require.NoError(t, json.Unmarshal([]byte(got[2]), &report))
			report["seconds"] = 0
			text, err := json.Marshal(report)
			require.NoError(t, err)
			if strings.HasPrefix(row.want, "{") {
				require.JSONEq(t, row.want, string(text))
			}
			require.Contains(t, string(text), `"reason":"`)
			byCommand, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, got[2], string(byCommand))
		})
	}
}

// S52: only the ends that Only selects are reported.
func TestNotify_only(t *testing.T) {
	reports := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reports++ }))
	defer server.Close()
	notify := callbacks.Notify(callbacks.Notification{URL: server.URL, Only: func(e loop.Ending) bool { return !e.Normal() }})
	for _, err := range []error{nil, errors.New("no memory")} {
		_, _ = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), notify,
			loop.Watch(loop.At(loop.Steps(4)), func(context.Context, loop.Report) error { return err }))
	}
	require.Equal(t, 1, reports)
}

// S52: a notification that fails is logged, without secrets, ends in time, and does not change the result.
func TestNotify_fails(t *testing.T) {
	const secret = "s3cret"
	redirected := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/500/" + secret:
			w.WriteHeader(http.StatusInternalServerError)
		case "/moved/" + secret:
			w.Header().Set("Location", "/elsewhere/"+secret)
			w.WriteHeader(http.StatusPermanentRedirect)
		case "/wrong/" + secret:
			w.Header().Set("Location", "://"+secret)
			w.WriteHeader(http.StatusFound)
		case "/hangs/" + secret:
			_, _ = io.Copy(io.Discard, r.Body) // then the end of the connection cancels
			<-r.Context().Done()
		default:
			redirected++
		}
	}))
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, row := range []struct {
		name, say string
		to        callbacks.Notification
	}{
		{"status", "POST to " + host + ": the status is 500, expected 2xx", callbacks.Notification{URL: server.URL + "/500/" + secret}},
		{"redirect", "the status is 308, expected 2xx", callbacks.Notification{URL: server.URL + "/moved/" + secret}},
		{"wrong redirect", "the status is 302, expected 2xx", callbacks.Notification{URL: server.URL + "/wrong/" + secret}},
		{"nobody", "connection refused", callbacks.Notification{URL: closed.URL + "/" + secret + "?token=" + secret}},
		{"late", "no response after 100ms", callbacks.Notification{URL: server.URL + "/hangs/" + secret, Timeout: 100 * time.Millisecond}},
		{"header", "invalid header", callbacks.Notification{URL: server.URL + "/ok", Header: http.Header{"Authorization": {secret + "\n"}}}},
		{"no program", "no-such-program: executable file not found", callbacks.Notification{Command: []string{"no-such-program", secret}}},
		{"exit code", "false: exit status 1", callbacks.Notification{Command: []string{"false", secret}}},
		{"late command", "sleep: no end after 100ms", callbacks.Notification{Command: []string{"sleep", "600"}, Timeout: 100 * time.Millisecond}},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := warnings(t)
			row.to.Run, row.to.Timeout = "digits", cmp.Or(row.to.Timeout, time.Minute)
			result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), callbacks.Notify(row.to))
			require.NoError(t, err)
			require.Equal(t, loop.DataEnded, result.Reason)
			require.Equal(t, 1, strings.Count(text.String(), "level=WARN"), text)
			require.Contains(t, text.String(), `run=digits reason="data ended"`)
			require.Contains(t, text.String(), row.say)
			require.NotContains(t, text.String(), secret)
		})
	}
	require.Zero(t, redirected, "a redirect gets no report and no header")
}

// Wrong settings end the run before its first step, without secrets.
func TestNotify_refuses(t *testing.T) {
	for _, to := range []callbacks.Notification{
		{}, {Command: []string{""}}, {URL: "hooks.example.com/s3cret"}, {URL: "ftp://example.com/s3cret"}, {URL: "https://\x7f/s3cret"}, {URL: "https:///s3cret"},
		{Command: []string{"true", "s3cret"}, Timeout: -1},
	} {
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), callbacks.Notify(to))
		require.ErrorContains(t, err, "notify): ")
		require.NotContains(t, err.Error(), "s3cret")
		require.Zero(t, result.Elapsed.Steps)
	}
}
