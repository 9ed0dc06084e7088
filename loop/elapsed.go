package loop

import (
	"fmt"
	"time"

	"github.com/lazo-ml/lazo/internal/records"
)

// Elapsed is a run's progress.
type Elapsed struct {
	Steps int64
	// Samples counts their examples ([Stepper]).
	Samples int64
	// Epochs is the number of complete passes over the data ([Source]). If the data does not report their ends, a run
	// counts them only where needed.
	Epochs int64
	// Time is active, by the monotonic clock.
	Time time.Duration
	// Date is the wall clock at the start plus monotonic time.
	Date Date
}

// Since returns the difference between e and an earlier o, with the Date of e.
func (e Elapsed) Since(o Elapsed) Elapsed {
	e.Steps -= o.Steps
	e.Samples -= o.Samples
	e.Epochs -= o.Epochs
	e.Time -= o.Time
	return e
}

// A copy of the struct waits for fields just written.
func (e *Elapsed) set(o *Elapsed) {
	e.Steps, e.Samples, e.Epochs, e.Time, e.Date = o.Steps, o.Samples, o.Epochs, o.Time, o.Date
}

func (e *Elapsed) count(o Elapsed) { e.Steps, e.Samples, e.Epochs = o.Steps, o.Samples, o.Epochs }

// Check returns an error for steps, samples, epochs or a time outside 0 to 2^62: sums cannot overflow.
func (e Elapsed) Check() error {
	switch {
	case e.Steps < 0 || e.Samples < 0 || e.Epochs < 0 || e.Time < 0:
		return fmt.Errorf("elapsed must not be negative, got %+v", e)
	case max(e.Steps, e.Samples, e.Epochs, int64(e.Time)) > records.Most:
		return fmt.Errorf("elapsed must be at most 2^62 steps, samples, epochs and nanoseconds, got %+v", e)
	}
	return nil
}

// Reached reports whether e is at p or beyond; a nil p is never reached.
func (e Elapsed) Reached(p Period) bool { return p != nil && p.Of(e) >= p.Length() }

// Period is a length of a run in [Steps], [Samples], [Epochs] or [Time], or a [Date].
type Period interface {
	fmt.Stringer
	Of(e Elapsed) int64
	with(e Elapsed, x int64) Elapsed
	// Length returns the period in its unit, 0 for a Date.
	Length() int64
}

// Steps is a period in iterations.
type Steps int64

// Samples is a period in examples.
type Samples int64

// Epochs is a period in passes over the data, each complete with its last iteration.
type Epochs int64

// Time is a period of active time.
type Time time.Duration

// Date is a wall-clock moment in nanoseconds since 1970: Date(t.UnixNano()). Zero is no date. [At], [After] and [Until]
// accept it, [Every] does not.
type Date int64

// Time returns the date in UTC.
func (p Date) Time() time.Time { return time.Unix(0, int64(p)).UTC() }

func (p Steps) String() string     { return count(int64(p), "step") }
func (p Steps) Of(e Elapsed) int64 { return e.Steps }
func (p Steps) Length() int64      { return int64(p) }

func (p Steps) with(e Elapsed, x int64) Elapsed {
	e.Steps = x
	return e
}

func (p Samples) String() string     { return count(int64(p), "sample") }
func (p Samples) Of(e Elapsed) int64 { return e.Samples }
func (p Samples) Length() int64      { return int64(p) }

func (p Samples) with(e Elapsed, x int64) Elapsed {
	e.Samples = x
	return e
}

func (p Epochs) String() string     { return count(int64(p), "epoch") }
func (p Epochs) Of(e Elapsed) int64 { return e.Epochs }
func (p Epochs) Length() int64      { return int64(p) }

func (p Epochs) with(e Elapsed, x int64) Elapsed {
	e.Epochs = x
	return e
}

func (p Time) String() string     { return time.Duration(p).String() }
func (p Time) Of(e Elapsed) int64 { return int64(e.Time) }
func (p Time) Length() int64      { return int64(p) }

func (p Time) with(e Elapsed, x int64) Elapsed {
	e.Time = time.Duration(x)
	return e
}

func (p Date) String() string     { return p.Time().Format(time.RFC3339) }
func (p Date) Of(e Elapsed) int64 { return int64(max(e.Date, 0) - p) }
func (p Date) Length() int64      { return 0 }

func (p Date) with(e Elapsed, x int64) Elapsed {
	e.Date = p + Date(x)
	return e
}

func count(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

type clock struct {
	start time.Time
	date  Date
	base  time.Duration
	// the processes' time since the start, or nil
	agreed *time.Duration
}

func newClock(from Elapsed) clock {
	now := time.Now()
	return clock{start: now, date: Date(now.UnixNano()), base: from.Time}
}

func (c *clock) set(e *Elapsed) {
	var d time.Duration
	if c.agreed != nil {
		d = *c.agreed
	} else {
		d = time.Since(c.start)
	}
	e.Time, e.Date = c.base+d, c.date+Date(d)
}

func (c *clock) at(e Elapsed) Elapsed {
	c.set(&e)
	return e
}

func (c *clock) next(e Elapsed, samples int64) Elapsed {
	e.Steps++
	e.Samples += samples
	return c.at(e)
}
