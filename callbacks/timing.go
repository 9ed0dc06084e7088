package callbacks

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Timing describes how a run spent its time.
type Timing struct {
	// Total is from the callbacks' start to their end.
	Total          time.Duration
	Steps, Samples int64
	// Parts are ordered by first call. Their times add up to Total.
	Parts []Part
	// Stages are those of [Measure]. They run concurrently: their sum may exceed Total.
	Stages []Part
}

// Part is the time of one part of a loop: waiting for data, a task, a callback, with the loop's work after it.
type Part struct {
	// Kind is "task", "callback", "stage" (in [Timing].Stages, with Total only), or "" for the data.
	Kind string
	// Name is the schedule, with the name if any; or "data".
	Name string
	// Calls counts the calls. A block of steps is one ([loop.Stepper]); a callback's start and end are two.
	Calls          int64
	Total, Longest time.Duration
	// First is the first call's time, for a step with compilation.
	First time.Duration
}

// Mean is a call's mean time, without the first if there are others.
func (p Part) Mean() time.Duration {
	if p.Calls > 1 {
		return (p.Total - p.First) / time.Duration(p.Calls-1)
	}
	return p.Total
}

// StepsPerSecond is the run's mean, with compilation.
func (t Timing) StepsPerSecond() float64 { return perSecond(t.Steps, t.Total) }

// SamplesPerSecond is like [Timing.StepsPerSecond].
func (t Timing) SamplesPerSecond() float64 { return perSecond(t.Samples, t.Total) }

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Waited returns the time of waiting for data.
func (t Timing) Waited() (d time.Duration) {
	for _, p := range t.Parts {
		if p.Kind == "" && p.Name == "data" {
			d += p.Total
		}
	}
	return d
}

func (t Timing) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s (%.1f a second), %s (%.1f a second)\n", rounded(t.Total),
		loop.Steps(t.Steps), t.StepsPerSecond(), loop.Samples(t.Samples), t.SamplesPerSecond())
	w := tabwriter.NewWriter(&s, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\tshare\ttotal\tcalls\tfirst\tmean\tlongest")
	for _, p := range t.Parts {
		name := p.Name
		if p.Kind != "" {
			name = p.Kind + " " + name
		}
		fmt.Fprintf(w, "%s\t%.1f%%\t%s\t%d\t%s\t%s\t%s\n", printable(name), t.share(p), rounded(p.Total), p.Calls,
			rounded(p.First), rounded(p.Mean()), rounded(p.Longest))
	}
	w.Flush()
	if len(t.Stages) > 0 {
		fmt.Fprintf(&s, "waited for data %s\n", waitedFor(t.Waited(), t.Total, t.Stages))
	}
	return s.String()
}

func (t Timing) share(p Part) float64 {
	if t.Total <= 0 {
		return 0
	}
	return 100 * p.Total.Seconds() / t.Total.Seconds()
}

func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for unit < time.Second && d >= 1000*unit {
		unit *= 10
	}
	return d.Round(min(unit, time.Second))
}

type stopwatch struct {
	begin, since time.Time
	parts        map[any]*Part
	order        []*Part
	part         *Part
}

func (s *stopwatch) turnTo(what any, part func() Part) {
	now := time.Now()
	s.leave(now)
	p, ok := s.parts[what]
	if !ok {
		made := part()
		p = &made
		if s.parts == nil {
			s.parts = map[any]*Part{}
		}
		s.parts[what] = p
		s.order = append(s.order, p)
	}
	s.part, s.since = p, now
	if s.begin.IsZero() {
		s.begin = now
	}
}

func (s *stopwatch) leave(now time.Time) {
	p := s.part
	if p == nil {
		return
	}
	took := now.Sub(s.since)
	if p.Calls == 0 {
		p.First = took
	}
	p.Calls++
	p.Total += took
	p.Longest = max(p.Longest, took)
	s.part = nil
}

func (s *stopwatch) Timing() Timing {
	now := time.Now()
	s.leave(now)
	var t Timing
	if !s.begin.IsZero() {
		t.Total = now.Sub(s.begin)
	}
	for _, p := range s.order {
		t.Parts = append(t.Parts, *p)
	}
	return t
}

// Measure calls done with the run's [Timing] when the run is over, however it ended. Work of a device after a step
// returned counts for the part that first reads a value. stages are as in [Bar].Stages.
func Measure(done func(Timing), stages ...iter.Seq2[string, time.Duration]) loop.Callback {
	c := loop.Callback{Name: "measure", When: loop.AtEnd, Order: -1}
	stages = slices.Clone(stages)
	c.Err = checkStages(stages)
	if done != nil {
		c.Start = func(loop.Beginning) (loop.Attendant, error) {
			return &measurement{done: done, work: startWork(stages)}, nil
		}
	}
	return c
}

type measurement struct {
	watch stopwatch
	work  work
	done  func(Timing)
}

func (m *measurement) At(_ int64, what abilities.Activity) {
	m.watch.turnTo(what, func() Part { return Part{Kind: what.Kind, Name: what.String()} })
}

func (m *measurement) Watch(context.Context, loop.Report) error { return nil }

func (m *measurement) End(_ context.Context, e loop.Ending) error {
	t := m.watch.Timing()
	ran := e.Elapsed.Since(e.From)
	t.Steps, t.Samples = ran.Steps, ran.Samples
	t.Stages = m.work.done()
	m.done(t)
	return nil
}
