package loop

import "time"

// clock measures a run by the monotonic clock, so that setting the wall clock changes nothing.
type clock struct {
	start time.Time
	date  Date          // of the start
	base  time.Duration // active time of the runs before this one
}

func newClock(from Elapsed) clock {
	now := time.Now()
	return clock{start: now, date: DateOf(now), base: from.Time}
}

// at is e with the present time and date.
func (c clock) at(e Elapsed) Elapsed {
	d := time.Since(c.start)
	e.Time, e.Date = c.base+d, c.date+Date(d)
	return e
}

// next is e with one more turn, of so many examples.
func (c clock) next(e Elapsed, samples int64) Elapsed {
	e.Steps++
	e.Samples += samples
	return c.at(e)
}
