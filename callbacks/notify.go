package callbacks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Notification is where [Notify] reports a run's end: a command, a webhook, or both.
type Notification struct {
	// Run is the report's name of the run.
	Run string
	// Command is a program with its arguments. It gets the report on standard input.
	Command []string
	// URL gets a POST with the report, over http or https; the status must be 2xx. Redirects are not followed.
	URL    string
	Header http.Header
	// Timeout limits each, 5 s by default.
	Timeout time.Duration
	// Only, if set, selects the ends to report, as !e.Normal() for failures and interruptions.
	Only func(e loop.Ending) bool
}

// Notify runs a command or calls a webhook after a run has ended by itself, failed or was cancelled, as by Ctrl-C. It
// sends a JSON object:
//
//	{"text": "digits: failed at step 1200: …", "run": "digits", "reason": "failed", "error": "…",
//	 "steps": 1200, "samples": 76800, "epochs": 2, "seconds": 63.5}
//
// reason is that of [loop.Reason]. A run that is refused before it starts reports nothing, nor does a killed process.
//
// If a notification fails, slog's default logger gets a warning, without arguments, paths of URLs and headers, which
// may have secrets.
func Notify(to Notification) loop.Callback {
	c := loop.Callback{Name: "notify", When: loop.Never, Order: -2, AtRank0: true}
	to.Command, to.Header, to.Timeout = slices.Clone(to.Command), to.Header.Clone(), cmp.Or(to.Timeout, 5*time.Second)
	u, err := url.Parse(to.URL)
	switch {
	case len(to.Command) == 0 && to.URL == "":
		return refused(c, errors.New("neither a Command nor a URL is given"))
	case len(to.Command) > 0 && to.Command[0] == "":
		return refused(c, errors.New("the Command has no program"))
	case to.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return refused(c, errors.New("the URL is not of the form https://host/path"))
	case to.Timeout < 0:
		return refused(c, fmt.Errorf("the timeout must not be negative, got %s", to.Timeout))
	}
	c.Start = func(from loop.Beginning) (loop.Attendant, error) {
		return &notifier{to: to, host: u.Host, job: from.Job}, nil
	}
	return c
}

type notifier struct {
	to   Notification
	host string
	job  loop.Job
}

func (n *notifier) Watch(context.Context, loop.Report) error { return nil }

func (n *notifier) End(ctx context.Context, e loop.Ending) error {
	if n.to.Only != nil && !n.to.Only(e) {
		return nil
	}
	if watched, ok := n.job.(abilities.Watched); ok {
		defer watched.Busy("notification", n.to.Timeout)()
	}
	text, err := json.Marshal(reportOf(n.to.Run, e))
	if err == nil {
		posted := make(chan error, 1)
		go func() { posted <- n.post(ctx, text) }()
		err = errors.Join(n.run(ctx, text), <-posted)
	}
	if err != nil {
		slog.WarnContext(ctx, "callbacks: notify: the end of the run is not reported", "run", n.to.Run, "reason", e.Reason.String(), "error", err)
	}
	return nil
}

type endReport struct {
	Text    string  `json:"text"`
	Run     string  `json:"run,omitempty"`
	Reason  string  `json:"reason"`
	Error   string  `json:"error,omitempty"`
	Steps   int64   `json:"steps"`
	Samples int64   `json:"samples"`
	Epochs  int64   `json:"epochs"`
	Seconds float64 `json:"seconds"`
}

func reportOf(run string, e loop.Ending) endReport {
	r := endReport{
		Text: fmt.Sprintf("%s: %s at step %d", cmp.Or(run, "lazo"), e.Reason, e.Elapsed.Steps), Run: run, Reason: e.Reason.String(),
		Steps: e.Elapsed.Steps, Samples: e.Elapsed.Samples, Epochs: e.Elapsed.Epochs, Seconds: e.Elapsed.Time.Seconds(),
	}
	if cause := cmp.Or(e.Err, e.Stop); cause != nil {
		r.Text += ": " + cause.Error()
	}
	if e.Err != nil {
		r.Error = e.Err.Error()
	}
	return r
}

func (n *notifier) run(ctx context.Context, text []byte) error {
	if len(n.to.Command) == 0 {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, n.to.Timeout)
	defer done()
	cmd := exec.CommandContext(ctx, n.to.Command[0], n.to.Command[1:]...)
	cmd.Stdin = bytes.NewReader(text)
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no end after %s", n.to.Timeout)
	}
	if failed := (*exec.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(n.to.Command[0]), err)
	}
	return err
}

func (n *notifier) post(ctx context.Context, text []byte) error {
	if n.to.URL == "" {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, n.to.Timeout)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.to.URL, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("POST to %s: the request cannot be made", n.host) // err has the URL
	}
	for name, values := range n.to.Header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	if user := request.URL.User; user != nil && request.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	response, err := http.DefaultTransport.RoundTrip(request) // a client would follow redirects, and its errors have addresses
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no response after %s", n.to.Timeout)
	}
	if err != nil {
		return fmt.Errorf("POST to %s: %w", n.host, err)
	}
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // to use the connection again
	_ = response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("POST to %s: the status is %d, expected 2xx", n.host, response.StatusCode)
	}
	return nil
}
