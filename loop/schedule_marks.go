package loop

import (
	"fmt"
	"math"
	"math/bits"
)

// marks is due in a turn that reaches or crosses a mark in one unit, once for several marks. A turn is asked from its
// beginning to its end, so no mark is lost however a run is divided into turns.
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
// the turn that crosses it. p must be positive and no [Date].
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

// At is due once, in the turn that reaches p. A [Date] before the beginning of the run is not reached in it.
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

// Exponential is due at first and then at factor times the point before: Exponential(Steps(10), 2) after 10, 20, 40,
// 80, … steps. Points are rounded to whole numbers. The factor must be at least 1.000001.
func Exponential(first Period, factor float64) Schedule {
	s := Schedule{name: fmt.Sprintf("%s by %g", named("exponentially from", first), factor)}
	if s.err = checkLength("exponentially", first); s.err != nil {
		return s
	}
	// With a factor still closer to 1, points would be closer to each other than float64 can represent.
	if !(factor >= 1.000001) || math.IsInf(factor, 1) {
		s.err = fmt.Errorf("factor must be greater than 1 (at least 1.000001) and finite, got %g", factor)
		return s
	}
	start, scale := first.Length(), 1/math.Log(factor)
	s.rule = marks{first, func(x int64) int64 {
		if x < start {
			return start
		}
		// The logarithm may be wrong by one where x is close to a point: start one earlier and search.
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

// mulDiv is (a·b+c)/d without overflow in between; the result must fit.
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
