package loop

import (
	"fmt"
	"time"

	"github.com/lazo-ml/lazo/internal/records"
)

// Elapsed is how far a run has come.
type Elapsed struct {
	// Steps is the number of turns, including the present one.
	Steps int64
	// Samples is the number of examples in the batches of these turns (see [Stepper]).
	Samples int64
	// Epochs is the number of passes over the data that are complete: see [Source].
	Epochs int64
	// Time is how long the run has been active, by the monotonic clock.
	Time time.Duration
	// Date is the wall clock at the start with the monotonic time since then added to it, so that setting the clock
	// during the run does not change it.
	Date Date
}

// Since is the difference in steps, samples, epochs and time between e and an earlier o. The Date stays that of e.
func (e Elapsed) Since(o Elapsed) Elapsed {
	e.Steps -= o.Steps
	e.Samples -= o.Samples
	e.Epochs -= o.Epochs
	e.Time -= o.Time
	return e
}

// set is *e = *o, field by field: the copy of a struct of this length waits for fields that were just written.
func (e *Elapsed) set(o *Elapsed) {
	e.Steps, e.Samples, e.Epochs, e.Time, e.Date = o.Steps, o.Samples, o.Epochs, o.Time, o.Date
}

// count takes over the steps, samples and epochs of o.
func (e *Elapsed) count(o Elapsed) { e.Steps, e.Samples, e.Epochs = o.Steps, o.Samples, o.Epochs }

// Check gives an error for steps, samples, epochs or a time that are not 0 to 2^62: sums and differences of those
// that are never overflow. [Continue] and files take no others.
func (e Elapsed) Check() error {
	switch {
	case e.Steps < 0 || e.Samples < 0 || e.Epochs < 0 || e.Time < 0:
		return fmt.Errorf("elapsed must not be negative, got %+v", e)
	case max(e.Steps, e.Samples, e.Epochs, int64(e.Time)) > records.Most:
		return fmt.Errorf("elapsed must be at most 2^62 steps, samples, epochs and nanoseconds, got %+v", e)
	}
	return nil
}

// Reached reports whether e is at p or beyond it; a nil p is never reached. A period has one unit. For whichever of
// several comes first, combine schedules: At(Steps(100)).Or(At(Time(time.Hour))).
func (e Elapsed) Reached(p Period) bool { return p != nil && p.Of(e) >= p.Length() }

// Period is a length of a run: [Steps], [Samples], [Epochs] or [Time]; or a [Date] at which it is over.
type Period interface {
	fmt.Stringer
	// Of is the part of e that this period measures, in the period's unit: steps, examples, epochs or nanoseconds.
	Of(e Elapsed) int64
	// with is e with that part set to x.
	with(e Elapsed, x int64) Elapsed
	// Length is the period in its unit; 0 for a Date.
	Length() int64
}

// Steps is a period counted in turns of the loop.
type Steps int64

// Samples is a period counted in examples.
type Samples int64

// Epochs is a period counted in passes over the data. A pass is complete in the turn of its last batch.
type Epochs int64

// Time is a period of active running time.
type Time time.Duration

// Date is a moment by the wall clock, in nanoseconds since 1970: Date(t.UnixNano()). Zero is no date. It has no length,
// so it can be used where something begins or happens ([At], [After], [Until]) but not in [Every].
//
// It is a number and not a [time.Time] because an Elapsed is copied several times a turn, and a pointer in it costs
// time.
type Date int64

// Time is the date as a time, in UTC.
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

// A date is measured from itself: the part is negative before it, and the length is 0.

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

// clock measures a run by the monotonic clock, so that setting the wall clock changes nothing.
type clock struct {
	start time.Time
	date  Date          // of the start
	base  time.Duration // active time of the runs before this one
	// agreed, if not nil, is the time since the start that the processes of a run have agreed on.
	agreed *time.Duration
}

func newClock(from Elapsed) clock {
	now := time.Now()
	return clock{start: now, date: Date(now.UnixNano()), base: from.Time}
}

// set sets the present time and date.
func (c *clock) set(e *Elapsed) {
	var d time.Duration
	if c.agreed != nil {
		d = *c.agreed
	} else {
		d = time.Since(c.start)
	}
	e.Time, e.Date = c.base+d, c.date+Date(d)
}

// at is e with the present time and date.
func (c *clock) at(e Elapsed) Elapsed {
	c.set(&e)
	return e
}

// next is e with one more turn, of so many examples.
func (c *clock) next(e Elapsed, samples int64) Elapsed {
	e.Steps++
	e.Samples += samples
	return c.at(e)
}
