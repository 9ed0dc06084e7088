package loop_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// specimen is a schedule and, in the simplest form, when it should be due in a turn of one step.
type specimen struct {
	loop.Schedule
	due func(before, after loop.Elapsed) bool
}

// unit is a unit of periods: how to make one, and which part of an elapsed it measures.
type unit struct {
	period func(int64) loop.Period
	of     func(loop.Elapsed) int64
}

var units = []unit{
	{func(n int64) loop.Period { return loop.Steps(n) }, func(e loop.Elapsed) int64 { return e.Steps }},
	{func(n int64) loop.Period { return loop.Samples(n) }, func(e loop.Elapsed) int64 { return e.Samples }},
	{func(n int64) loop.Period { return loop.Time(n) }, func(e loop.Elapsed) int64 { return int64(e.Time) }},
	{func(n int64) loop.Period { return noon + loop.Date(n) }, func(e loop.Elapsed) int64 { return int64(e.Date - noon) }},
}

const dates = 3 // the index of the unit that has no lengths

// marked is due where a turn passes over an x with a mark.
func marked(s loop.Schedule, u unit, mark func(x int64) bool) specimen {
	return specimen{s, func(before, after loop.Elapsed) bool {
		for x := u.of(before) + 1; x <= u.of(after); x++ {
			if mark(x) {
				return true
			}
		}
		return false
	}}
}

// marking draws a schedule of one unit.
func marking(t *rapid.T, which int) specimen {
	u, n := units[which], rapid.Int64Range(1, 25).Draw(t, "n")
	kinds := []string{"at", "every"}
	if which == dates {
		kinds = kinds[:1]
	}
	p := u.period(n)
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "every":
		return marked(loop.Every(p), u, func(x int64) bool { return x%n == 0 })
	default:
		return marked(loop.At(p), u, func(x int64) bool { return x == n })
	}
}

func drawSchedule(t *rapid.T, depth int) specimen {
	kinds := []string{"mark", "mark", "mark", "after", "each", "never", "odd", "any", "all", "not", "phases", "then"}
	if depth == 0 {
		kinds = kinds[:7]
	}
	part := func() specimen { return drawSchedule(t, depth-1) }
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "after":
		u, n := rapid.SampledFrom(units).Draw(t, "unit"), rapid.Int64Range(1, 25).Draw(t, "n")
		return specimen{loop.After(u.period(n)), func(_, after loop.Elapsed) bool { return u.of(after) >= n }}
	case "each":
		return specimen{loop.EachStep, func(_, _ loop.Elapsed) bool { return true }}
	case "never":
		return specimen{loop.Schedule{}, func(_, _ loop.Elapsed) bool { return false }}
	case "odd":
		odd := func(_, after loop.Elapsed) bool { return after.Samples%2 == 1 }
		return specimen{loop.When("odd", odd), odd}
	case "any":
		a, b := part(), part()
		return specimen{a.Schedule.Or(b.Schedule), func(x, y loop.Elapsed) bool { return a.due(x, y) || b.due(x, y) }}
	case "all":
		a, b := part(), part()
		return specimen{a.Schedule.And(b.Schedule), func(x, y loop.Elapsed) bool { return a.due(x, y) && b.due(x, y) }}
	case "not":
		a := part()
		return specimen{a.Schedule.Not(), func(x, y loop.Elapsed) bool { return !a.due(x, y) }}
	case "then":
		n, a := rapid.Int64Range(1, 20).Draw(t, "from"), part()
		return specimen{loop.Never.Then(loop.Steps(n), a.Schedule), func(x, y loop.Elapsed) bool {
			x.Steps, y.Steps = x.Steps-n, y.Steps-n
			return x.Steps >= 0 && a.due(x, y)
		}}
	case "phases":
		n, m := rapid.Int64Range(1, 20).Draw(t, "from"), rapid.Int64Range(1, 20).Draw(t, "long")
		parts := []specimen{part(), part(), part()}
		s := parts[0].Schedule.Or().Then(loop.Steps(n), parts[1].Schedule).Then(
			loop.Steps(n+m), parts[2].Schedule)

		return specimen{s, func(x, y loop.Elapsed) bool {
			zero, i := int64(0), 0
			for _, from := range []int64{n, n + m} {
				if x.Steps >= from {
					zero, i = from, i+1
				}
			}
			x.Steps, y.Steps = x.Steps-zero, y.Steps-zero
			return parts[i].due(x, y)
		}}
	default:
		return marking(t, rapid.IntRange(0, dates).Draw(t, "unit"))
	}
}

// drawRun is a run of turns of one step, with batches and times of any size.
func drawRun(t *rapid.T) []loop.Elapsed {
	run := []loop.Elapsed{{Date: noon}}
	for _, size := range rapid.SliceOfN(rapid.IntRange(0, 15), 1, 40).Draw(t, "turns") {
		e, passed := run[len(run)-1], time.Duration(size%4)
		run = append(run, loop.Elapsed{Steps: e.Steps + 1, Samples: e.Samples + int64(size/4), Time: e.Time + passed, Date: e.Date + loop.Date(passed)})
	}
	return run
}

// exponential is due at first, and then at factor times the point before, rounded.
func exponential(first int64, factor float64, of func(loop.Elapsed) int64) loop.Schedule {
	next := func(x int64) int64 {
		for k := 0.0; ; k++ {
			if point := math.Round(float64(first) * math.Pow(factor, k)); point > float64(x) {
				return int64(point)
			}
		}
	}
	return loop.When("exponential", func(before, after loop.Elapsed) bool { return next(of(before)) <= of(after) })
}

func steps(e loop.Elapsed) int64   { return e.Steps }
func samples(e loop.Elapsed) int64 { return e.Samples }
