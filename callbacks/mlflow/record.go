package mlflow

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Run is the server and a run's description.
type Run struct {
	URL string
	// Token is sent as a bearer token; otherwise User and Password, if set, by basic authentication. They are in no
	// message.
	Token, User, Password string
	// Experiment is created if there is none of this name, by default "Default".
	Experiment string
	// Name is by default the server's choice.
	Name string
	// ID makes a resumed run continue its record: put the pointer into checkpoint.Options.Also too. An empty text
	// gets a random one. It becomes the tag lazo.run.
	ID *string
	// Parameters are added to the state's settings, like the batch size, and the run's end. Maps become names with dots.
	Parameters map[string]any
	Tags       map[string]string
	// Artifacts are files and folders that are uploaded at the end.
	Artifacts []string
	// Model, if set, writes a model's files into a folder after a normal end, as [SaveModel]. They become the artifact
	// "model".
	Model func(dir string) (Signature, error)
	// Timeout limits a request, default 10 s; that of a file's content is limited by Deadline alone.
	Timeout time.Duration
	// Deadline limits the wait at the run's end, default 1 min. It must allow for the uploads.
	Deadline time.Duration
	// Transport is by default http.DefaultTransport.
	Transport http.RoundTripper
}

const (
	timeout  = 10 * time.Second
	deadline = time.Minute
	queue    = 256 // unread reports: each may hold values on the device
)

// Record records the losses, metrics and other numbers of the due iterations, by name, or as "collection/name" if two
// collections share it. The status is FINISHED, or FAILED after an error, or KILLED after a cancellation or
// loop.ErrPause.
//
// Values are read and sent in the background. While the server does not answer, up to 200,000 values wait in memory,
// and newer ones are lost. slog's default logger gets a warning of this, and at the end if anything is missing. A
// parameter of a resumed run that differs is recorded as the tag "changed.<name>".
//
// Artifacts need a server that stores them (--serve-artifacts, its default), or a local folder.
func Record(to Run, when loop.Schedule) loop.Callback {
	to.Artifacts, to.Tags, to.Parameters = slices.Clone(to.Artifacts), maps.Clone(to.Tags), maps.Clone(to.Parameters)
	to.Timeout, to.Deadline, to.Experiment = cmp.Or(to.Timeout, timeout), cmp.Or(to.Deadline, deadline), cmp.Or(to.Experiment, "Default")
	c := loop.Callback{Name: "mlflow", When: when, AtRank0: true}
	u, err := url.Parse(to.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		c.Err = errors.New("the URL is not of the form https://host or http://host:port")
	case to.Timeout < 0 || to.Deadline < 0:
		c.Err = fmt.Errorf("the timeout and the deadline must not be negative, got %s and %s", to.Timeout, to.Deadline)
	}
	if c.Err != nil {
		c.Err = fmt.Errorf("mlflow: %w", c.Err)
	}
	c.Start = func(from loop.Beginning) (loop.Attendant, error) {
		r := newRecorder(to, u)
		if to.ID != nil {
			if *to.ID == "" {
				*to.ID = token()
			}
			r.id = *to.ID
		}
		if from.Until != nil {
			r.parameter("until", from.Until.String())
		}
		r.flatten("", to.Parameters)
		for name, value := range to.Tags {
			r.tag(name, value)
		}
		background := callbacks.Background{Queue: queue, Deadline: to.Deadline, Dropped: func(_ string, n int64) { r.dropped = n }}
		reader, err := background.Of(loop.Callback{Name: c.Name, When: when, Start: func(loop.Beginning) (loop.Attendant, error) {
			return reading{r}, nil
		}}).Start(from)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		go r.send(ctx)
		return &attendant{recorder: r, reader: reader, job: from.Job, cancel: cancel}, nil
	}
	return c
}

func token() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (r *recorder) flatten(before string, parameters map[string]any) {
	for name, v := range parameters {
		if inner, ok := v.(map[string]any); ok {
			r.flatten(before+name+".", inner)
			continue
		}
		r.parameter(before+name, fmt.Sprint(v))
	}
}

type attendant struct {
	*recorder
	reader loop.Attendant
	job    loop.Job
	cancel context.CancelFunc
	looked bool
}

func (a *attendant) Watch(ctx context.Context, r loop.Report) error {
	if !a.looked {
		a.looked = true
		a.look(r)
	}
	return a.reader.Watch(ctx, r)
}

type configured interface{ Settings() []checkpoint.Setting }

// look takes the settings: those of the batches are known after the first step.
func (a *attendant) look(r loop.Report) {
	if state, ok := abilities.StateAs[configured](r); ok {
		for _, s := range state.Settings() {
			if s.Value != "" {
				a.parameter(s.Name, s.Value)
			}
		}
	}
}

func (a *attendant) End(ctx context.Context, e loop.Ending) error {
	defer a.cancel()
	if watched, ok := a.job.(abilities.Watched); ok {
		defer watched.Busy("mlflow", a.to.Deadline+a.to.Timeout)()
	}
	ctx, done := context.WithTimeout(ctx, a.to.Deadline)
	defer done()
	if e.Reason != loop.Failed { // values of a device that has failed may never come
		a.look(e.Report)
	}
	a.note(a.reader.End(ctx, e))
	a.finish(ctx, e)
	a.cancel()
	<-a.done
	if missing := a.missing(); missing != nil {
		slog.WarnContext(ctx, "mlflow: the record is incomplete", missing...)
	}
	return nil
}

func statusOf(e loop.Ending) string {
	switch {
	case e.Reason == loop.Cancelled || errors.Is(e.Stop, loop.ErrPause):
		return "KILLED"
	case !e.Normal():
		return "FAILED"
	}
	return "FINISHED"
}

type reading struct{ of *recorder }

func (r reading) Watch(_ context.Context, report loop.Report) error {
	at := time.Now()
	if report.Elapsed.Date != 0 {
		at = report.Elapsed.Date.Time()
	}
	for e := range report.Logs.All() {
		if !e.IsNumber() {
			if _, err := e.Value.Float(); err != nil { // an array or a text
				continue
			}
		}
		v, err := e.Value.Float()
		if err != nil {
			r.of.note(fmt.Errorf("step %d: %s: %w", report.Elapsed.Steps, e.Path(), err))
			continue
		}
		r.of.metric(e, v, at.UnixMilli(), report.Elapsed.Steps)
	}
	r.of.notify()
	return nil
}

func (r reading) End(context.Context, loop.Ending) error { return nil }
