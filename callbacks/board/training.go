package board

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/board"
	"github.com/lazo-ml/lazo/loop"
)

const (
	queue    = 256 // unread reports: each may hold values on the device
	deadline = 10 * time.Second
	sampling = 2 * time.Second
)

// Training shows a run under a name: the numbers, texts and images (image.Image) of the due iterations.
//
// Values are read in the background. If the device or the machine is too slow for the schedule, the oldest reports
// are left out, and a line of the log has their number.
//
// The page can stop the run ([loop.ErrStop]) or pause it ([loop.ErrPause]), save it if it has checkpoint.Resume, and
// change the learning rate of a state that has one. In a job these take effect at the next due iteration.
func (b *Board) Training(name string, when loop.Schedule) loop.Option {
	return loop.Prepare("board", func(context.Context, loop.Beginning) (loop.Option, error) { return b.ofRun(name, when), nil })
}

func (b *Board) ofRun(name string, when loop.Schedule) loop.Option {
	c := &control{}
	changes := loop.Callback{Name: "board control", Changes: true, WhenRun: func(from loop.Beginning) loop.Schedule {
		if from.Job == nil {
			return loop.Never
		}
		return when
	}, Start: func(from loop.Beginning) (loop.Attendant, error) {
		c.start(from)
		return c, nil
	}}
	if b == nil {
		return loop.Options(changes, loop.Callback{Name: "board", When: when, AtRank0: true, Start: func(loop.Beginning) (loop.Attendant, error) {
			return nil, errors.New("board: rank 0 has no board: it calls Serve")
		}})
	}
	return loop.Options(changes, loop.Callback{Name: "board", When: when, AtRank0: true, Start: func(from loop.Beginning) (loop.Attendant, error) {
		return b.attend(name, when, from, c)
	}})
}

type attendant struct {
	board   *Board
	run     *board.Run
	control *control
	reader  loop.Attendant
	waits   waits
	stop    chan struct{}
	done    chan struct{}
	looked  bool
	dropped int64
}

func (b *Board) attend(name string, when loop.Schedule, from loop.Beginning, c *control) (loop.Attendant, error) {
	a := &attendant{board: b, run: b.store.Add(name), control: c, stop: make(chan struct{}), done: make(chan struct{})}
	background := callbacks.Background{Queue: queue, Deadline: deadline, Dropped: func(_ string, n int64) { a.dropped = n }}
	var err error
	a.reader, err = background.Of(loop.Callback{Name: "board", When: when, Start: func(loop.Beginning) (loop.Attendant, error) {
		return reading{a.run}, nil
	}}).Start(from)
	if err != nil {
		return nil, err
	}
	c.say.Store(a.run)
	a.run.Row("run", from.From, nil, nil)
	a.run.Describe(func(i *board.Info) {
		i.Status, i.Actions, i.Control = string(checkpoint.Running), c.actions, c.ask
		i.Rate = c.first
		if from.Until != nil {
			i.Until = from.Until.String()
		}
	})
	b.begins(a.run)
	go a.sample()
	return a, nil
}

type waits struct{ waited, since atomic.Int64 }

func (w *waits) at(data bool) {
	now := time.Now().UnixNano()
	if since := w.since.Swap(0); since != 0 {
		w.waited.Add(now - since)
	}
	if data {
		w.since.Store(now)
	}
}

func (w *waits) total() time.Duration {
	total := w.waited.Load()
	if since := w.since.Load(); since != 0 {
		total += time.Now().UnixNano() - since
	}
	return time.Duration(total)
}

func (a *attendant) At(_ int64, what abilities.Activity) {
	a.waits.at(what.Kind == "" && what.Name == "data")
}

func (a *attendant) sample() {
	defer close(a.done)
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	last, waited, used := time.Now(), a.waits.total(), cpuTime()
	for {
		select {
		case <-tick.C:
		case <-a.stop:
			return
		}
		now, waits, cpu := time.Now(), a.waits.total(), cpuTime()
		passed := now.Sub(last)
		numbers := map[string]float64{"throughput.waiting for data": min(1, max(0, (waits-waited).Seconds()/passed.Seconds()))}
		if cpu > 0 {
			numbers["resources.CPU cores"] = (cpu - used).Seconds() / passed.Seconds()
		}
		numbers["resources.memory"] = memory()
		if a.board.options.Numbers != nil {
			for name, v := range a.board.options.Numbers() {
				numbers["resources."+name] = v
			}
		}
		last, waited, used = now, waits, cpu
		names := slices.Sorted(maps.Keys(numbers))
		values := make([]float64, len(names))
		for i, name := range names {
			values[i] = numbers[name]
		}
		a.run.Numbers("process", names, values)
	}
}

type configured interface{ Settings() []checkpoint.Setting }

// look takes the settings: those of the batches are known after the first step.
func (a *attendant) look(r loop.Report) {
	settings := map[string]string{}
	if state, ok := abilities.StateAs[configured](r); ok {
		for _, s := range state.Settings() {
			settings[s.Name] = s.Value
		}
	}
	rate := a.control.first
	if rate == nil && a.control.job == nil { // in a job, all processes would read it
		rate = a.control.rate()
	}
	a.run.Describe(func(i *board.Info) {
		if i.Settings = settings; i.Rate == nil {
			i.Rate = rate
		}
	})
}

func (a *attendant) Watch(ctx context.Context, r loop.Report) error {
	if !a.looked {
		a.looked = true
		a.look(r)
	}
	return a.reader.Watch(ctx, r)
}

func (a *attendant) End(ctx context.Context, e loop.Ending) error {
	close(a.stop)
	<-a.done
	if watched, ok := a.control.job.(abilities.Watched); ok {
		defer watched.Busy("board", deadline)()
	}
	err := a.reader.End(ctx, e)
	if a.dropped > 0 {
		a.run.Log(fmt.Sprintf("board: %d reports were not read: choose a longer schedule", a.dropped))
	}
	if err != nil { // the page is no reason to fail
		a.run.Log("board: " + err.Error())
	}
	a.board.ends(a.run)
	a.run.Describe(func(i *board.Info) {
		i.Status, i.Why, i.Actions, i.Control = statusOf(e), whyOf(e), nil, nil
		if e.Normal() && i.Progress > 0 {
			i.Progress = progress(e.Report)
		}
	})
	return nil
}

func statusOf(e loop.Ending) string {
	switch {
	case e.Reason == loop.Cancelled || errors.Is(e.Stop, loop.ErrPause):
		return string(checkpoint.Interrupted)
	case !e.Normal():
		return string(checkpoint.Failed)
	}
	return string(checkpoint.Ended)
}

func whyOf(e loop.Ending) string {
	why := fmt.Sprintf("%s after %s", e.Reason, loop.Steps(e.Elapsed.Steps))
	if cause := cmp.Or(e.Err, e.Stop); cause != nil {
		why += ": " + cause.Error()
	}
	return why
}

func progress(r loop.Report) float64 {
	if r.Until == nil || r.Until.Length() <= 0 {
		return 0
	}
	if _, date := r.Until.(loop.Date); date {
		return 0
	}
	return min(1, float64(r.Until.Of(r.Elapsed))/float64(r.Until.Length()))
}

type reading struct{ run *board.Run }

func (r reading) Watch(_ context.Context, report loop.Report) error {
	var names []string
	var values []float64
	for e := range report.Logs.All() {
		v, err := e.Value.Float()
		if err == nil {
			names, values = append(names, e.Path()), append(values, v)
			continue
		}
		if e.IsNumber() {
			r.run.Log(fmt.Sprintf("board: step %d: %s: %v", report.Elapsed.Steps, e.Path(), err))
			continue
		}
		if err := r.show(report.Elapsed.Steps, e); err != nil {
			r.run.Log(fmt.Sprintf("board: step %d: %s: %v", report.Elapsed.Steps, e.Path(), err))
		}
	}
	r.run.Row("run", report.Elapsed, names, values)
	if done := progress(report); done > 0 {
		r.run.Describe(func(i *board.Info) { i.Progress = done })
	}
	return nil
}

func (r reading) End(context.Context, loop.Ending) error { return nil }

const longestText = 16 << 10

func (r reading) show(step int64, e loop.Entry) error {
	v, err := e.Any()
	if err != nil {
		return err
	}
	s := board.Sample{Step: step, Name: e.Path()}
	switch v := v.(type) {
	case string:
		s.Text = strings.ToValidUTF8(v[:min(len(v), longestText)], "\ufffd")
	case image.Image:
		var b bytes.Buffer
		if err := png.Encode(&b, v); err != nil {
			return err
		}
		s.PNG = b.Bytes()
	default:
		return nil
	}
	r.run.Show(s)
	return nil
}
