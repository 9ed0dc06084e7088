package loop

import (
	"fmt"
	"time"
)

// Elapsed is how far a run has come.
type Elapsed struct {
	// Steps is the number of turns; within a turn its own is counted.
	Steps int64
	// Samples is the number of examples in the batches of these turns (see [Sized]).
	Samples int64
	// Time is how long the run has been active, by the monotonic clock.
	Time time.Duration
}

// Period is a length of a run: [Steps], [Samples] or [Time].
type Period interface {
	fmt.Stringer
	// of gives the part of e that this period measures, in its own unit.
	of(e Elapsed) int64
	// length is the period in its own unit.
	length() int64
}

// Steps is a period counted in turns of the loop.
type Steps int64

// Samples is a period counted in examples.
type Samples int64

// Time is a period of active running time.
type Time time.Duration

func (p Steps) String() string     { return count(int64(p), "step") }
func (p Steps) of(e Elapsed) int64 { return e.Steps }
func (p Steps) length() int64      { return int64(p) }

func (p Samples) String() string     { return count(int64(p), "sample") }
func (p Samples) of(e Elapsed) int64 { return e.Samples }
func (p Samples) length() int64      { return int64(p) }

func (p Time) String() string     { return time.Duration(p).String() }
func (p Time) of(e Elapsed) int64 { return int64(e.Time) }
func (p Time) length() int64      { return int64(p) }

// Reached tells whether e is at p or beyond it.
func (e Elapsed) Reached(p Period) bool { return p.of(e) >= p.length() }

func count(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
