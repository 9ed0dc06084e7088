package callbacks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Bar has the settings of [ProgressBar].
type Bar struct {
	// Off shows nothing.
	Off bool
	// Shows has the collections to show, default [loop.Losses], [loop.Metrics] and [loop.Stateful]; empty shows none.
	Shows []loop.Collection
	// Epoch shows the run in epochs of this length, like loop.Epochs(1).
	//
	// A finished epoch gets a line with its time, the values logged at its end, a mean over the epoch (avg_<name>) instead
	// of the value, and the examples per second. The last line has the reason of the end.
	//
	// A terminal also shows the running epoch in one row: its progress, the time left, the newest values, and why the
	// run waits (compilation, evaluation, data).
	Epoch loop.Period
	// EpochSteps is the number of steps per epoch, for the progress within loop.Epochs(1).
	EpochSteps loop.Steps
	Below      []*Lines
	// Stages shows the share of the epoch's time, or without Epoch of the run's, in which the run waits for data, by
	// stages: "data 42% (decode 30%, resize 12%)". It is All of a data.Stages.
	Stages iter.Seq2[string, time.Duration]

	drawing func(*bar)
}

func joinedBar(list []Bar) (all Bar) {
	for _, s := range list {
		all.Off = s.Off || all.Off
		if s.Shows != nil {
			all.Shows = slices.Clone(s.Shows)
		}
		all.Epoch, all.EpochSteps = cmp.Or(s.Epoch, all.Epoch), cmp.Or(s.EpochSteps, all.EpochSteps)
		if s.Below != nil {
			all.Below = slices.Clone(s.Below)
		}
		if s.Stages != nil {
			all.Stages = s.Stages
		}
		if before := all.drawing; s.drawing != nil {
			all.drawing = func(b *bar) {
				if before != nil {
					before(b)
				}
				s.drawing(b)
			}
		}
	}
	return all
}

func (s Bar) check() error {
	if _, counted := s.Epoch.(loop.Epochs); s.EpochSteps < 0 || s.EpochSteps > 0 && !counted {
		return fmt.Errorf("%s in an epoch of %v: EpochSteps must be positive, and needs the Epoch loop.Epochs(1)", s.EpochSteps, s.Epoch)
	}
	return nil
}

type bar struct {
	terminal            func() (columns int, ok bool)
	live                bool
	shown               []loop.Collection
	when                loop.Schedule
	before              loop.Elapsed
	begun               bool
	latest              loop.Logs
	first, recent, last measurePoint
	above               []*Lines
	epochs              *epochs
	waits               *waits
	coloured            bool
	screen              screen
	err                 error
}

type measurePoint struct {
	time    time.Duration
	samples int64
	done    int64
}

const (
	redraw  = 50 * time.Millisecond
	plain   = 30 * time.Second
	rateFor = 2 * time.Second
)

// ProgressBar shows a run's progress on w, usually [os.Stderr]: the part done in the unit of [loop.Until], the time
// left, the newest losses and metrics, and examples per second.
//
// On a terminal it redraws one line, at most 20 times per second. Otherwise it writes lines: after the first
// iteration, each tenth of Until, every 30 seconds, and at the end. It reads values only then. Colours need a
// terminal and an empty NO_COLOR.
//
// Other output must go through [Lines]. If writing fails, the bar stops and the run continues. A nil writer shows
// nothing.
func ProgressBar(w io.Writer, settings ...Bar) loop.Callback {
	s := joinedBar(settings)
	probe := newBar(w, s)
	if probe.screen.out == nil {
		return idle("progress bar")
	}
	return loop.Callback{
		Name:    "progress bar",
		AtRank0: true,
		WhenRun: func(from loop.Beginning) loop.Schedule {
			if from.Job == nil {
				return probe.schedule(from.From, from.Until)
			}
			// All processes need one schedule.
			return probe.scheduleOn(false, from.From, from.Until).Or(probe.scheduleOn(true, from.From, from.Until))
		},
		Start: func(from loop.Beginning) (loop.Attendant, error) {
			b := newBar(w, s)
			if b.err != nil {
				return nil, &refusal{"progress bar", b.err}
			}
			b.waits.begin()
			switch {
			case b.epochs == nil && b.waits != nil:
				return observingBar{b}, nil
			case b.epochs == nil:
				return b, nil
			}
			if err := b.epochs.each.Err(); err != nil {
				return nil, &refusal{"progress bar", err}
			}
			return startWaiting(b, from), nil
		},
	}
}

func (b *bar) schedule(from loop.Elapsed, until loop.Period) loop.Schedule {
	return b.scheduleOn(b.live, from, until)
}

func (b *bar) scheduleOn(live bool, from loop.Elapsed, until loop.Period) loop.Schedule {
	first := loop.At(loop.Steps(sum(from.Steps, 1)))
	switch {
	case live && b.epochs != nil:
		return first.Or(b.epochs.each, loop.Every(loop.Time(redraw)))
	case b.epochs != nil:
		return first.Or(b.epochs.each)
	case live:
		return first.Or(loop.Every(loop.Time(redraw)))
	}
	if until == nil || until.Length() <= 0 {
		return first.Or(loop.Every(loop.Time(plain)))
	}
	return first.Or(loop.Every(tenth(until)), loop.Every(loop.Time(plain)))
}

func tenth(p loop.Period) loop.Period {
	n := (p.Length()-1)/10 + 1
	switch p.(type) {
	case loop.Samples:
		return loop.Samples(n)
	case loop.Epochs:
		return loop.Epochs(n)
	case loop.Time:
		return loop.Time(n)
	}
	return loop.Steps(n)
}

func newBar(w io.Writer, s Bar) *bar {
	b := &bar{shown: s.Shows, err: s.check()}
	if s.Shows == nil {
		b.shown = []loop.Collection{loop.Losses, loop.Metrics, loop.Stateful}
	}
	if l, ok := w.(*Lines); ok && l != nil {
		w, b.above = l.Out, []*Lines{l}
	}
	b.above = append(b.above, s.Below...)
	b.screen.out = w
	if f, ok := w.(*os.File); ok {
		b.screen.out = quietPipe(f)
		_, b.live = terminalColumns(f)
		term := os.Getenv("TERM")
		b.live = b.live && term != "dumb" // a dumb terminal lacks \r
		b.coloured = b.live && term != "" && !strings.HasPrefix(term, "vt") && os.Getenv("NO_COLOR") == ""
		b.terminal = func() (int, bool) { return terminalColumns(f) }
	}
	if s.Off {
		b.screen.out = nil
	}
	if s.Epoch != nil {
		b.epochs = newEpochs(b, s)
	}
	if s.Stages != nil {
		b.waits = &waits{stages: []iter.Seq2[string, time.Duration]{s.Stages}}
	}
	if s.drawing != nil {
		s.drawing(b)
	}
	return b
}

func (b *bar) Watch(_ context.Context, r loop.Report) error {
	if b.screen.out == nil {
		return nil
	}
	if b.err != nil {
		return &refusal{"progress bar", b.err}
	}
	if r.Latest.Len() == 0 {
		b.latest.Merge(r.Logs.Clone())
	}
	if !b.begun {
		b.when = b.schedule(r.From, r.Until)
		if err := b.when.Err(); err != nil {
			return &refusal{"progress bar", err}
		}
		b.begun, b.before = true, r.From
		b.first = measurePointOf(r)
		b.recent, b.last = b.first, b.first
		if b.epochs != nil {
			b.epochs.begin(r.From, r.History)
			b.first = b.epochs.measure(r)
			b.epochs.began = measurePoint{time: r.From.Time, samples: r.From.Samples}
		}
	}
	switch {
	case b.epochs != nil:
		b.epochs.watch(b.before, r)
	case b.when.Due(b.before, r.Elapsed) && !r.Elapsed.Reached(r.Until):
		b.write(r, false)
	}
	b.before = r.Elapsed
	return nil
}

func (b *bar) End(_ context.Context, e loop.Ending) error {
	switch {
	case b.screen.out == nil:
	case b.epochs != nil:
		b.epochs.end(e)
	case e.Elapsed.Steps > e.From.Steps:
		b.write(e.Report, true)
	}
	for _, l := range b.above {
		l.leave(&b.screen)
	}
	return nil
}

func measurePointOf(r loop.Report) measurePoint {
	m := measurePoint{time: r.Elapsed.Time, samples: r.Elapsed.Samples}
	m.done = progressOf(r).done
	return m
}

// progress is in Until's unit; of a date, time from the start. all is 0 if unknown.
type progress struct {
	done, all int64
	isTime    bool
}

func progressOf(r loop.Report) (p progress) {
	switch until := r.Until.(type) {
	case nil:
		return p
	case loop.Date:
		p.isTime, p.done = true, int64(r.Elapsed.Time-r.From.Time)
		p.all = int64(until-r.Elapsed.Date) + p.done
	default:
		_, p.isTime = until.(loop.Time)
		p.done, p.all = until.Of(r.Elapsed), until.Length()
	}
	p.all = max(p.all, 0)
	p.done = min(max(p.done, 0), p.all)
	return p
}

func (p progress) left(now time.Duration, since measurePoint) (time.Duration, bool) {
	switch {
	case p.all == 0:
		return 0, false
	case p.isTime:
		return time.Duration(p.all - p.done), true
	}
	part, took := p.done-since.done, now-since.time
	if part <= 0 || took <= 0 {
		return 0, false
	}
	left := float64(took) * float64(p.all-p.done) / float64(part)
	return time.Duration(min(left, float64(longTime))), true
}

// longTime: longer estimates overflow.
const longTime = 100 * 365 * 24 * time.Hour

func (b *bar) rate(now measurePoint, end bool) float64 {
	from := b.recent
	if now.time-b.last.time >= rateFor {
		b.recent, b.last = b.last, now
	}
	if end {
		from = b.first
	}
	if now.time <= from.time {
		return 0
	}
	return float64(now.samples-from.samples) / (now.time - from.time).Seconds()
}
