package prometheus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Training offers the numbers of the runs of this name: steps, examples, losses and metrics of the due iterations, and
// the time in which a run waits for data. It reads the values, which waits for their steps.
func (m *Metrics) Training(name string, when loop.Schedule) loop.Callback {
	return loop.Callback{Name: "prometheus", When: when, Order: -1, Start: func(from loop.Beginning) (loop.Attendant, error) {
		a := &attendant{run: m.runs.of(label(name)), last: from.From}
		a.run.begin(from)
		return a, nil
	}}
}

// Saved counts the writes of a run's checkpoints, for the option Saved of package checkpoint.
func (m *Metrics) Saved(run string) func(step checkpoint.Step, took time.Duration, err error) {
	run = label(run)
	saves, failures, seconds := m.saves.WithLabelValues(run), m.saveFailures.WithLabelValues(run), m.saveSeconds.WithLabelValues(run)
	return func(step checkpoint.Step, took time.Duration, err error) {
		seconds.Add(took.Seconds())
		if err != nil && !errors.Is(err, checkpoint.ErrNotPruned) {
			failures.Inc()
			return
		}
		saves.Inc()
		m.lastSave.WithLabelValues(run).Set(float64(step))
	}
}

type runs struct {
	mu    sync.Mutex
	named map[string]*run
}

func (r *runs) of(name string) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.named[name] == nil {
		r.named[name] = &run{ends: map[string]int{}, values: map[entry]float64{}}
	}
	return r.named[name]
}

type entry struct{ collection, name string }

type run struct {
	mu              sync.Mutex
	running         int
	now             loop.Elapsed
	steps, examples int64
	took, waited    time.Duration
	active          time.Time // of the newest activity
	waits           time.Time // since when it waits for data, or zero
	ends            map[string]int
	values          map[entry]float64
	rank, ranks     int
}

func (r *run) begin(from loop.Beginning) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.active, r.rank, r.ranks = from.From, time.Now(), 0, 1
	if r.running++; from.Job != nil {
		r.rank, r.ranks = from.Job.Rank(), from.Job.Size()
	}
}

func (r *run) wait(now time.Time) time.Duration {
	if r.waits.IsZero() {
		return r.waited
	}
	return r.waited + now.Sub(r.waits)
}

type attendant struct {
	run  *run
	last loop.Elapsed
}

func (a *attendant) At(_ int64, what abilities.Activity) {
	now := time.Now()
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.run.waited, a.run.active, a.run.waits = a.run.wait(now), now, time.Time{}
	if what.Kind == "" && what.Name == "data" {
		a.run.waits = now
	}
}

func (a *attendant) Watch(_ context.Context, r loop.Report) error {
	a.see(r)
	return nil
}

func (a *attendant) see(r loop.Report) {
	values := map[entry]float64{}
	for e := range r.Latest.All() {
		if v, err := e.Value.Float(); err == nil { // else it is not a number
			values[entry{label(string(e.Collection)), label(e.Name)}] = v
		}
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	passed := r.Elapsed.Since(a.last)
	a.last, a.run.now = r.Elapsed, r.Elapsed
	a.run.steps, a.run.examples, a.run.took = a.run.steps+passed.Steps, a.run.examples+passed.Samples, a.run.took+passed.Time
	maps.Copy(a.run.values, values)
}

func (a *attendant) End(_ context.Context, e loop.Ending) error {
	if e.Reason != loop.Failed { // values of a device that has failed may never come
		a.see(e.Report)
	}
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.run.waited, a.run.waits = a.run.wait(time.Now()), time.Time{}
	a.run.running--
	a.run.ends[e.Reason.String()]++
	return nil
}

var (
	runningDesc  = desc("lazo_training_running", "Runs of this name in progress.", "run")
	stepDesc     = desc("lazo_training_step", "Steps done since the start of the training, also by earlier processes.", "run")
	epochDesc    = desc("lazo_training_epoch", "Epochs completed since the start of the training.", "run")
	stepsDesc    = desc("lazo_training_steps_total", "Steps of this process.", "run")
	examplesDesc = desc("lazo_training_examples_total", "Examples of this process.", "run")
	secondsDesc  = desc("lazo_training_seconds_total", "Time in runs.", "run")
	waitDesc     = desc("lazo_training_data_wait_seconds_total", "Time in which runs waited for data.", "run")
	idleDesc     = desc("lazo_training_idle_seconds", "Time since a run in progress began its newest step, task, callback or wait for data.", "run")
	valueDesc    = desc("lazo_training_value", "Newest values of losses, metrics and other numbers.", "run", "collection", "name")
	endsDesc     = desc("lazo_training_ends_total", "Runs that ended, by reason.", "run", "reason")
	rankDesc     = desc("lazo_job_rank", "Rank of this process in the job of its run.", "run")
	ranksDesc    = desc("lazo_job_ranks", "Processes of the job.", "run")
)

func (r *runs) Describe(to chan<- *client.Desc) {
	for _, d := range []*client.Desc{runningDesc, stepDesc, epochDesc, stepsDesc, examplesDesc, secondsDesc, waitDesc, idleDesc, valueDesc, endsDesc, rankDesc, ranksDesc} {
		to <- d
	}
}

func (r *runs) Collect(to chan<- client.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, run := range r.named {
		run.collect(name, to)
	}
}

func (r *run) collect(name string, to chan<- client.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	send := func(d *client.Desc, kind client.ValueType, v float64, labels ...string) {
		to <- client.MustNewConstMetric(d, kind, v, append([]string{name}, labels...)...)
	}
	send(runningDesc, client.GaugeValue, float64(r.running))
	send(stepDesc, client.GaugeValue, float64(r.now.Steps))
	send(epochDesc, client.GaugeValue, float64(r.now.Epochs))
	send(stepsDesc, client.CounterValue, float64(r.steps))
	send(examplesDesc, client.CounterValue, float64(r.examples))
	send(secondsDesc, client.CounterValue, r.took.Seconds())
	send(waitDesc, client.CounterValue, r.wait(time.Now()).Seconds())
	idle := time.Duration(0)
	if r.running > 0 {
		idle = time.Since(r.active)
	}
	send(idleDesc, client.GaugeValue, idle.Seconds())
	send(rankDesc, client.GaugeValue, float64(r.rank))
	send(ranksDesc, client.GaugeValue, float64(r.ranks))
	for e, v := range r.values {
		send(valueDesc, client.GaugeValue, v, e.collection, e.name)
	}
	for reason, n := range r.ends {
		send(endsDesc, client.CounterValue, float64(n), reason)
	}
}

type health struct {
	Run     string  `json:"run"`
	Running bool    `json:"running"`
	Step    int64   `json:"step"`
	Idle    float64 `json:"idle_seconds"`
}

func (r *runs) health(now time.Time) (all []health) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.named)) {
		run := r.named[name]
		run.mu.Lock()
		all = append(all, health{name, run.running > 0, run.now.Steps, now.Sub(run.active).Seconds()})
		run.mu.Unlock()
	}
	return all
}
