// Package board serves a page that follows trainings. A [Store] has the data, which [Store.Handler] serves.
package board

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Store has a page's runs. Its methods and those of its runs do not wait for readers.
type Store struct {
	mu      sync.Mutex
	runs    []*Run
	nextID  int
	version int64
	changed chan struct{}
	awaited bool
	gone    []gone
	over    chan struct{}
}

type gone struct {
	id      int
	version int64
}

// The methods of Run may be called from several goroutines.
type Run struct {
	store   *Store
	id      int
	name    string
	series  map[string]*series
	names   []string
	sources map[string]*source
	info    Info
	at      loop.Elapsed
	updated time.Time
	lines   []line
	cut     int // lines before the kept ones
	samples []Sample
	shown   int // samples added
	version int64
}

type source struct {
	last, measured loop.Elapsed
	any            bool
}

type Info struct {
	// Status is running, ended, failed, interrupted, or "" if unknown, Why the reason of the end.
	Status, Why string
	Err         string
	Settings    map[string]string
	Rate        *float64
	// Until is the end, Progress the done part of it, or 0.
	Until    string
	Progress float64
	// Search is the folder's table of trials, or nil.
	Search any
	// Actions are those of Control: stop, pause, save, rate.
	Actions []string
	// Control, if not nil, does an action in the training; value is the rate. It must not wait for the training.
	Control func(action string, value float64) error
}

type Sample struct {
	Step int64
	Name string
	Text string
	PNG  []byte
}

type line struct {
	at   time.Time
	text string
}

const (
	mostLines   = 1000
	longestLine = 4 << 10
	mostSamples = 32
	window      = time.Second
)

func NewStore() *Store { return &Store{changed: make(chan struct{}), over: make(chan struct{})} }

// End ends the events of all pages, after their newest state.
func (s *Store) End() { close(s.over) }

// Add adds a run. A name may be used again.
func (s *Store) Add(name string) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	r := &Run{store: s, id: s.nextID, name: name, series: map[string]*series{}, sources: map[string]*source{}}
	s.runs = append(s.runs, r)
	s.touch(r)
	return r
}

func (r *Run) Remove() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if i := slices.Index(r.store.runs, r); i >= 0 {
		r.store.runs = slices.Delete(r.store.runs, i, i+1)
		r.store.touch(nil)
		r.store.gone = append(r.store.gone, gone{r.id, r.store.version})
	}
}

func (s *Store) touch(r *Run) {
	s.version++
	if r != nil {
		r.version, r.updated = s.version, time.Now()
	}
	if s.awaited { // a channel for each row would be garbage
		close(s.changed)
		s.changed, s.awaited = make(chan struct{}), false
	}
}

// Row adds a row's numbers by full name. A source is a writer of rows: if its steps decrease, its later values are
// removed. A name belongs to the first source with it.
func (r *Run) Row(from string, at loop.Elapsed, names []string, values []float64) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	s := r.sources[from]
	if s == nil {
		s = &source{}
		r.sources[from] = s
	}
	if at.Steps < s.last.Steps {
		r.rewind(from, at.Steps)
		s.any = false
	}
	for i, name := range names {
		r.value(from, name, point{at.Steps, at.Time.Seconds(), values[i]})
	}
	switch took := at.Time - s.measured.Time; {
	case !s.any:
		s.any, s.measured = true, at
	case took >= window && at.Steps > s.measured.Steps:
		passed := at.Since(s.measured)
		r.value(from, "throughput.steps per second", point{at.Steps, at.Time.Seconds(), float64(passed.Steps) / took.Seconds()})
		if passed.Samples > 0 {
			r.value(from, "throughput.examples per second", point{at.Steps, at.Time.Seconds(), float64(passed.Samples) / took.Seconds()})
		}
		s.measured = at
	}
	s.last = at
	r.at = loop.Elapsed{Steps: at.Steps, Samples: at.Samples, Epochs: at.Epochs, Time: at.Time}
	r.store.touch(r)
	if at.Date != 0 {
		r.updated = at.Date.Time()
	}
}

func (r *Run) Numbers(from string, names []string, values []float64) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for i, name := range names {
		r.value(from, name, point{r.at.Steps, r.at.Time.Seconds(), values[i]})
	}
	r.store.touch(r)
}

func (r *Run) Rewind(from string, step int64) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.rewind(from, step)
	r.store.touch(r)
}

func (r *Run) rewind(from string, step int64) {
	for _, s := range r.series {
		if s.source == from {
			s.rewind(step)
		}
	}
}

func (r *Run) value(from, name string, p point) {
	s := r.series[name]
	if s == nil {
		s = &series{source: from}
		r.series[name] = s
		at, _ := slices.BinarySearchFunc(r.names, name, compareNames)
		r.names = slices.Insert(r.names, at, name)
	}
	if s.source == from {
		s.add(p, most)
	}
}

// Losses and metrics are before other collections.
func compareNames(a, b string) int {
	rank := func(name string) int {
		collection, _, _ := strings.Cut(name, ".")
		return slices.Index([]string{"resources", "throughput", "", string(loop.Stateful), string(loop.Metrics), string(loop.Losses)}, collection)
	}
	order := func(name string) int {
		if i := rank(name); i >= 0 {
			return -i
		}
		return -2
	}
	return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a, b))
}

func (r *Run) Describe(change func(*Info)) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	change(&r.info)
	r.store.touch(r)
}

func (r *Run) Log(text string) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	now := time.Now()
	for l := range strings.Lines(text) {
		if l = strings.TrimRight(l, "\r\n"); len(l) > longestLine {
			l = l[:longestLine] + "…"
		}
		r.lines = append(r.lines, line{now, strings.ToValidUTF8(l, "\ufffd")})
	}
	if n := len(r.lines) - mostLines; n > 0 {
		r.lines, r.cut = slices.Delete(r.lines, 0, n), r.cut+n
	}
	r.store.touch(r)
}

// Show adds a sample. The oldest are dropped.
func (r *Run) Show(s Sample) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if r.samples = append(r.samples, s); len(r.samples) > mostSamples {
		r.samples = slices.Delete(r.samples, 0, 1)
	}
	r.shown++
	r.store.touch(r)
}

type state struct {
	ID       int               `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Why      string            `json:"why"`
	Err      string            `json:"error"`
	Steps    int64             `json:"steps"`
	Samples  int64             `json:"samples"`
	Epochs   int64             `json:"epochs"`
	Seconds  float64           `json:"seconds"`
	Updated  float64           `json:"updated"`
	Until    string            `json:"until"`
	Progress float64           `json:"progress"`
	Rate     *float64          `json:"rate"`
	Settings map[string]string `json:"settings"`
	Actions  []string          `json:"actions"`
	Series   []seriesState     `json:"series"`
	Shown    int               `json:"shown"`
	Search   any               `json:"search,omitempty"`
}

type seriesState struct {
	Name string `json:"name"`
	N    int    `json:"n"`
	Step int64  `json:"step"`
	// Value is a text: JSON has no NaN.
	Value string `json:"value"`
}

func (r *Run) state() state {
	s := state{ID: r.id, Name: r.name, Status: r.info.Status, Why: r.info.Why, Err: r.info.Err, Steps: r.at.Steps, Samples: r.at.Samples, Epochs: r.at.Epochs,
		Seconds: r.at.Time.Seconds(), Updated: float64(r.updated.UnixMilli()) / 1000, Until: r.info.Until, Progress: r.info.Progress,
		Settings: r.info.Settings, Actions: r.info.Actions, Shown: r.shown, Search: r.info.Search}
	if rate := r.info.Rate; rate != nil && !math.IsNaN(*rate) && !math.IsInf(*rate, 0) {
		s.Rate = rate
	}
	for _, name := range r.names {
		of := r.series[name]
		s.Series = append(s.Series, seriesState{name, len(of.points), of.newest.step, strconv.FormatFloat(of.newest.value, 'g', 6, 64)})
	}
	return s
}

func (s *Store) run(id int) *Run {
	if i := slices.IndexFunc(s.runs, func(r *Run) bool { return r.id == id }); i >= 0 {
		return s.runs[i]
	}
	return nil
}
