package mlflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

const (
	// most is the maximum number of waiting values, about 16 MiB.
	most = 200_000
	// The server's limits of a request, and of texts.
	metricsAtOnce, textsAtOnce = 1000, 100
	longestValue, longestTag   = 6000, 8000
	longestName                = 250

	gather    = 500 * time.Millisecond // for one request
	firstWait = time.Second
	lastWait  = 30 * time.Second
	lastTries = 2
)

type metric struct {
	Key       string `json:"key"`
	Value     number `json:"value"`
	Timestamp int64  `json:"timestamp"`
	Step      int64  `json:"step"`
}

// number is a float64, in JSON as a protocol buffer's.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 0):
		return []byte(map[bool]string{true: `"Infinity"`, false: `"-Infinity"`}[v > 0]), nil
	default:
		return fmt.Append(nil, v), nil
	}
}

type text struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type recorder struct {
	to   Run
	api  *client
	wake chan struct{}
	done chan struct{}

	mu         sync.Mutex
	id         string
	owners     map[string]loop.Collection // of names without a collection
	pending    []metric
	parameters map[string]string // not sent yet
	sent       map[string]string
	tags       map[string]string
	run        *run // nil before it is known
	ending     bool
	tries      int
	failing    bool
	losing     bool
	lost       int64
	from, last int64 // steps of lost values
	dropped    int64
	left       []string // other missing parts
	err        error    // the first that a further request does not repair
	down       error    // of the newest request, if the server did not answer
}

func newRecorder(to Run, u *url.URL) *recorder {
	return &recorder{to: to, api: newClient(to, u), wake: make(chan struct{}, 1), done: make(chan struct{}), id: token(), owners: map[string]loop.Collection{},
		parameters: map[string]string{}, sent: map[string]string{}, tags: map[string]string{}}
}

func (r *recorder) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.err == nil {
		r.err = err
	}
}

func (r *recorder) parameter(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parameters[keyOf(name)] = cut(value, longestValue)
}

func (r *recorder) tag(name, value string) {
	r.tags[cut(name, longestName)] = cut(value, longestTag)
}

func (r *recorder) metric(e loop.Entry, v float64, timestamp, step int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := e.Name
	if r.owners[key] == "" {
		r.owners[key] = e.Collection
	}
	if r.owners[key] != e.Collection {
		key = string(e.Collection) + "/" + key
	}
	if len(r.pending) >= most {
		if r.lost == 0 {
			r.from = step
		}
		if r.lost, r.last = r.lost+1, step; !r.losing {
			r.losing = true
			slog.Warn("mlflow: lost from this step on, until the server answers", "server", r.api.host, "step", step, "kept", len(r.pending))
		}
		return
	}
	r.pending = append(r.pending, metric{keyOf(key), number(v), timestamp, step})
}

func keyOf(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-. /", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "_%02X_", c)
	}
	return cut(b.String(), longestName)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "…"
}

// send sends what waits until the run has ended and nothing waits, or until the context ends.
func (r *recorder) send(ctx context.Context) {
	defer close(r.done)
	wait := firstWait
	for ctx.Err() == nil {
		more, err := r.once(ctx)
		if ctx.Err() != nil {
			return
		}
		ending := r.saw(err)
		switch {
		case err != nil && ending && r.tries >= lastTries:
			return
		case err != nil:
			if ending {
				wait = firstWait
			}
			r.pause(ctx, wait, !ending)
			wait = min(2*wait, lastWait)
			continue
		case more:
			continue
		case ending:
			return
		}
		wait = firstWait
		select {
		case <-r.wake:
			r.pause(ctx, gather, true)
		case <-ctx.Done():
		}
	}
}

func (r *recorder) pause(ctx context.Context, d time.Duration, unlessEnding bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		r.mu.Lock()
		ending := r.ending
		r.mu.Unlock()
		if ending && unlessEnding {
			return
		}
		select {
		case <-timer.C:
			return
		case <-r.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (r *recorder) saw(err error) (ending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		if r.down = err; !r.failing {
			r.failing = true
			slog.Warn("mlflow: not recorded, kept in memory until the server answers", "server", r.api.host, "error", err)
		}
		if r.ending {
			r.tries++
		}
	case r.failing:
		r.failing, r.down = false, nil
		slog.Warn("mlflow: recorded again", "server", r.api.host, "lost", r.lost, "lost_from", r.from, "lost_to", r.last)
	}
	return r.ending
}

func (r *recorder) once(ctx context.Context) (more bool, err error) {
	if r.run == nil {
		found, err := r.api.open(ctx, r.to, r.id)
		if err != nil {
			return false, err
		}
		r.mu.Lock()
		r.run = found
		maps.Copy(r.sent, found.parameters)
		r.mu.Unlock()
	}
	batch := r.take()
	if batch.empty() {
		return false, nil
	}
	batch.RunID = r.run.id
	err = r.api.post(ctx, "runs/log-batch", batch, nil)
	refused := (*refusedError)(nil)
	isRefused := errors.As(err, &refused)
	if err != nil && !isRefused {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if isRefused {
		r.loseBatch(batch, err)
	}
	r.pending = r.pending[len(batch.Metrics):]
	for _, p := range batch.Params {
		r.sent[p.Key] = p.Value
		if r.parameters[p.Key] == p.Value {
			delete(r.parameters, p.Key)
		}
	}
	for _, t := range batch.Tags {
		delete(r.tags, t.Key)
	}
	if len(r.pending) == 0 {
		r.pending, r.losing = nil, false // the memory of a long outage
	}
	return true, nil
}

// loseBatch leaves out what the server would refuse again.
func (r *recorder) loseBatch(b batch, err error) {
	if r.err == nil {
		r.err = err
		slog.Warn("mlflow: the server refused a part of the record", "server", r.api.host, "values", len(b.Metrics), "parameters", len(b.Params), "tags", len(b.Tags), "error", err)
	}
	if len(b.Metrics) > 0 {
		if r.lost == 0 {
			r.from = b.Metrics[0].Step
		}
		r.lost, r.last = r.lost+int64(len(b.Metrics)), b.Metrics[len(b.Metrics)-1].Step
	}
	for _, t := range slices.Concat(b.Params, b.Tags) {
		r.left = append(r.left, t.Key)
	}
}

type batch struct {
	RunID   string   `json:"run_id"`
	Metrics []metric `json:"metrics,omitempty"`
	Params  []text   `json:"params,omitempty"`
	Tags    []text   `json:"tags,omitempty"`
}

func (b batch) empty() bool { return len(b.Metrics)+len(b.Params)+len(b.Tags) == 0 }

// take returns parameters, else tags, else values: each alone is below a megabyte.
func (r *recorder) take() (b batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.parameters)) {
		value := r.parameters[name]
		switch was, known := r.sent[name]; {
		case known && was == value:
			delete(r.parameters, name)
		case known:
			r.tag("changed."+name, value)
			delete(r.parameters, name)
		case len(b.Params) < textsAtOnce:
			b.Params = append(b.Params, text{name, value})
		}
	}
	if len(b.Params) > 0 {
		return b
	}
	for _, name := range slices.Sorted(maps.Keys(r.tags)) {
		if len(b.Tags) < textsAtOnce {
			b.Tags = append(b.Tags, text{name, r.tags[name]})
		}
	}
	if len(b.Tags) > 0 {
		return b
	}
	b.Metrics = slices.Clone(r.pending[:min(metricsAtOnce, len(r.pending))])
	return b
}

func (r *recorder) finish(ctx context.Context, e loop.Ending) {
	r.mu.Lock()
	r.ending = true
	r.mu.Unlock()
	r.notify()
	select {
	case <-r.done:
	case <-ctx.Done():
		r.note(fmt.Errorf("the record was not complete %s after the end of the run", r.to.Deadline))
	}
	r.mu.Lock()
	run, unsent := r.run, r.tries >= lastTries
	r.mu.Unlock()
	leave := func(what string, err error) {
		r.mu.Lock()
		r.left = append(r.left, what)
		r.mu.Unlock()
		r.note(err)
	}
	if run == nil || unsent { // no answer
		leave("status", nil)
		if len(r.to.Artifacts) > 0 || r.to.Model != nil && e.Normal() {
			leave("artifacts", nil)
		}
		return
	}
	if r.to.Model != nil && e.Normal() {
		if err := r.api.model(ctx, run, r.to.Model); err != nil {
			leave("model", err)
		}
	}
	for _, path := range r.to.Artifacts {
		if err := r.api.artifact(ctx, run, path); err != nil {
			leave(path, err)
		}
	}
	// Also after the deadline.
	if err := r.api.status(context.WithoutCancel(ctx), run, statusOf(e)); err != nil {
		leave("status", err)
	}
}

func (r *recorder) missing() []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost, from, last := r.lost, r.from, r.last
	if n := len(r.pending); n > 0 {
		if from = min(from, r.pending[0].Step); lost == 0 {
			from, last = r.pending[0].Step, r.pending[n-1].Step
		}
		lost += int64(n)
	}
	for name := range r.parameters {
		r.left = append(r.left, name)
	}
	for name := range r.tags {
		r.left = append(r.left, name)
	}
	slices.Sort(r.left)
	if lost+r.dropped == 0 && len(r.left) == 0 && r.err == nil {
		return nil
	}
	return []any{"server", r.api.host, "values", lost, "from_step", from, "to_step", last, "unread_iterations", r.dropped, "others", r.left, "error", cmp.Or(r.err, r.down)}
}
