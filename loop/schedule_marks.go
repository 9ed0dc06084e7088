package loop

// marks is due in an iteration that reaches or crosses a mark in one unit, once for several marks. The rule gets the
// beginning and the end of an iteration, so no mark is lost however a run is divided into iterations.
type marks struct {
	unit Period
	// following is the first mark after x, [never] if there is none.
	following func(x int64) int64
}

func (m marks) due(before, after Elapsed) bool {
	return m.following(m.unit.Of(before)) <= m.unit.Of(after)
}

func (m marks) needs() needs { return needsOf(m.unit) }

// Every is due at the multiples of p from the start of the run: Every(Steps(100)) after 100, 200, … finished steps, and
// with [Schedule.AndAtStart] also before the first. Samples and time may jump over a multiple; it is then due once, in
// the iteration that crosses it. p must be positive and no [Date].
func Every(p Period) Schedule {
	if err := checkLength("every", p); err != nil {
		return Schedule{name: named("every", p), err: err}
	}
	n := p.Length()
	return Schedule{name: named("every", p), rule: marks{p, func(x int64) int64 {
		x = max(x, 0)
		last := x - x%n
		return last + min(n, never-last)
	}}}
}

// At is due once, in the iteration that reaches p. A [Date] before the beginning of the run is not reached in it.
func At(p Period) Schedule {
	if err := checkPoint("at", p); err != nil {
		return Schedule{name: named("at", p), err: err}
	}
	length := p.Length()
	return Schedule{name: named("at", p), rule: marks{p, func(x int64) int64 {
		if x < length {
			return length
		}
		return never
	}}}
}

// named is a word and its period, if there is one.
func named(word string, p Period) string {
	if p == nil {
		return word
	}
	return word + " " + p.String()
}
