package loop

import (
	"fmt"
	"math"
	"math/bits"
)

// marks is due in a turn that reaches or crosses a mark on the line of one unit. Several marks in one turn are one
// firing. Because a turn asks from its beginning to its end, cutting a run into other turns loses none.
type marks struct {
	unit Period
	// following is the first mark beyond x, [never] if there is none.
	following func(x int64) int64
}

func (m marks) due(before, after Elapsed) bool {
	return m.following(m.unit.Of(before)) <= m.unit.Of(after)
}

func (m marks) needs() needs { return needsOf(m.unit) }

// Every is due each time another p is full: Every(Steps(100)) after 100, 200, … steps. Samples and time may jump over
// a multiple; it is then due once, in the turn that crosses it, and the next one stays where it was.
//
// Ciclo counts before the step, so that it fires at 0, 100, 200, …; we count finished steps, because then "every 100
// steps" has seen 100 steps ([Schedule.AndAtStart] gives the firing at 0). Ciclo measures samples and time from the
// last firing, and time from when the schedule was made, so that its period drifts; we measure from the start of the run,
// because a schedule keeps nothing.
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

// At is due once, in the turn that reaches p. A [Date] that was over before the run began is not reached in it.
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

// Exponential is due at first and then at a multiple of the point before: Exponential(Steps(10), 2) after 10, 20, 40,
// 80, … steps. Points that are not whole are rounded. The factor must be at least 1.000001.
func Exponential(first Period, factor float64) Schedule {
	s := Schedule{name: fmt.Sprintf("%s by %g", named("exponentially from", first), factor)}
	if s.err = checkLength("exponentially", first); s.err != nil {
		return s
	}
	// Still closer to 1, points would lie nearer to each other than numbers can tell.
	if !(factor >= 1.000001) || math.IsInf(factor, 1) {
		s.err = fmt.Errorf("factor must be greater than 1 (at least 1.000001) and finite, got %g", factor)
		return s
	}
	start, scale := first.Length(), 1/math.Log(factor)
	s.rule = marks{first, func(x int64) int64 {
		if x < start {
			return start
		}
		// The logarithm finds the place, but is wrong by one where x is close to a point: start one earlier and look.
		k := max(math.Ceil(math.Log((float64(x)+0.5)/float64(start))*scale)-1, 1)
		for ; ; k++ {
			point := math.Round(float64(start) * math.Pow(factor, k))
			if point >= math.MaxInt64 {
				return never
			}
			if mark := int64(point); mark > x {
				return mark
			}
		}
	}}
	return s
}

// Times is due n times up to until, which is the last of them, as evenly as whole numbers allow: Times(4, Steps(10))
// after 2, 5, 7 and 10 steps. There must be at least n units in until.
func Times(n int, until Period) Schedule {
	s := Schedule{name: named(fmt.Sprintf("%d times until", n), until)}
	if s.err = checkLength("times", until); s.err != nil {
		return s
	}
	if n <= 0 || int64(n) > until.Length() {
		s.err = fmt.Errorf("the number of times must be 1 or more and fit in %s, got %d", until, n)
		return s
	}
	length, times := uint64(until.Length()), uint64(n)
	s.rule = marks{until, func(x int64) int64 {
		x = max(x, 0)
		if x >= int64(length) {
			return never
		}
		// Point k is k·length/n, rounded down; the first beyond x is that of k = (x+1)·n/length, rounded up.
		k := mulDiv(uint64(x)+1, times, length, length-1)
		return int64(mulDiv(k, length, times, 0))
	}}
	return s
}

// mulDiv is (a·b+c)/d without overflow on the way; the result must fit.
func mulDiv(a, b, d, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	low, carry := bits.Add64(low, c, 0)
	quotient, _ := bits.Div64(high+carry, low, d)
	return quotient
}

// named is a word and its period, if there is one.
func named(word string, p Period) string {
	if p == nil {
		return word
	}
	return word + " " + p.String()
}
