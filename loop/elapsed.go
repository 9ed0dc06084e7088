package loop

import (
	"fmt"
	"math"
	"time"

	"github.com/lazo-ml/lazo/internal/records"
)

// Elapsed is how far a run has come.
type Elapsed struct {
	// Steps is the number of turns; within a turn its own is counted.
	Steps int64
	// Samples is the number of examples in the batches of these turns (see [Sized]).
	Samples int64
	// Time is how long the run has been active, by the monotonic clock.
	Time time.Duration
	// Date is the wall clock: that of the start, and the monotonic time since then added to it. A clock that is set
	// during the run moves it neither back nor ahead.
	Date Date
}

// Since is what passed between o and e, o being the earlier: the difference in steps, samples and time. The Date stays
// that of e.
//
// Ciclo takes the time from the start of o's run, not from o; we subtract, because a patience of ten minutes is ten
// minutes from the best value, however long the run has been going on.
func (e Elapsed) Since(o Elapsed) Elapsed {
	e.Steps -= o.Steps
	e.Samples -= o.Samples
	e.Time -= o.Time
	return e
}

// Check gives an error for steps, samples or a time that are not 0 to 2^62: sums and differences of those that are never
// overflow. [From] and files take no others.
func (e Elapsed) Check() error {
	switch {
	case e.Steps < 0 || e.Samples < 0 || e.Time < 0:
		return fmt.Errorf("elapsed must not be negative, got %+v", e)
	case max(e.Steps, e.Samples, int64(e.Time)) > records.Most:
		return fmt.Errorf("elapsed must be at most 2^62 steps, samples and nanoseconds, got %+v", e)
	}
	return nil
}

// Reached tells whether e is at p or beyond it; nothing reaches nil.
//
// Ciclo's periods may name several units, and a comparison is true if any of them makes it true, so that "reached" and
// "not reached" can hold at once; ours have one unit, because then there is one comparison and it has one meaning. For
// whichever comes first, put schedules together: Any(At(Steps(100)), At(Time(time.Hour))).
func (e Elapsed) Reached(p Period) bool { return p != nil && p.Of(e) >= p.Length() }

// Period is a length of a run: [Steps], [Samples] or [Time]; or a [Date] at which that length is over.
type Period interface {
	fmt.Stringer
	// Of gives the part of e that this period measures, in its own unit.
	Of(e Elapsed) int64
	// with is e with that part set to x.
	with(e Elapsed, x int64) Elapsed
	// Length is the period in its own unit.
	Length() int64
}

// Steps is a period counted in turns of the loop.
type Steps int64

// Samples is a period counted in examples.
type Samples int64

// Time is a period of active running time.
type Time time.Duration

// Date is a moment by the wall clock, in nanoseconds since 1970; zero is no date. It has no length, so it stands where
// something begins or happens ([At], [After], [Until]) and not in [Every].
//
// It is a number because an Elapsed is copied several times a turn: with the pointer in a [time.Time] an idle turn of
// the loop took 85 ns, without 50.
type Date int64

// DateOf is the date of a time. Times that a Date cannot hold (before 1970, after 2262) become the nearest it can.
func DateOf(t time.Time) Date {
	switch {
	case t.Before(Date(0).Time()):
		return 0
	case t.After(Date(math.MaxInt64).Time()):
		return math.MaxInt64
	}
	return Date(t.UnixNano())
}

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

func (p Time) String() string     { return time.Duration(p).String() }
func (p Time) Of(e Elapsed) int64 { return int64(e.Time) }
func (p Time) Length() int64      { return int64(p) }

func (p Time) with(e Elapsed, x int64) Elapsed {
	e.Time = time.Duration(x)
	return e
}

// A date is measured from itself: before it the part is negative, and the length is none.

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
