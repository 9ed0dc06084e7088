package loop

type marks struct {
	unit Period
	// or [noMark]
	following func(x int64) int64
}

func (m marks) due(before, after Elapsed) bool {
	return m.following(m.unit.Of(before)) <= m.unit.Of(after)
}

func (m marks) needs() needs { return needsOf(m.unit) }

// Every returns a schedule due at the multiples of p from the run's start: Every(Steps(100)) after 100, 200, … steps.
// An iteration that crosses several is due once. p must be positive and not a [Date].
func Every(p Period) Schedule {
	if err := checkLength("every", p); err != nil {
		return Schedule{name: named("every", p), err: err}
	}
	n := p.Length()
	return Schedule{name: named("every", p), rule: marks{p, func(x int64) int64 {
		x = max(x, 0)
		last := x - x%n
		return last + min(n, noMark-last)
	}}}
}

// At returns a schedule due once, in the iteration that reaches p. A run never reaches a [Date] before its beginning.
func At(p Period) Schedule {
	if err := checkPoint("at", p); err != nil {
		return Schedule{name: named("at", p), err: err}
	}
	length := p.Length()
	return Schedule{name: named("at", p), rule: marks{p, func(x int64) int64 {
		if x < length {
			return length
		}
		return noMark
	}}}
}

func named(word string, p Period) string {
	if p == nil {
		return word
	}
	return word + " " + p.String()
}
