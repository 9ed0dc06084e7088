package loop_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

func TestSchedule_lawOfTheReference(t *testing.T) {
	fired, asked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s, run := drawSchedule(t, 3), drawRun(t)
		require.NoError(t, s.Err(), s.String())
		for i, after := range run[1:] {
			want := s.due(run[i], after)
			if s.Due(run[i], after) != want {
				t.Fatalf("%s from %+v to %+v: due should be %t", s, run[i], after, want)
			}
			asked++
			if want {
				fired++
			}
		}
	})
	t.Logf("%d of %d turns fired, 0 against the reference", fired, asked)
}

// A schedule answers the same for iterations in any order or for some of them only. It keeps nothing, so an interrupted
// and resumed run is due where the whole run is.
func TestSchedule_lawOfPurity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, run := drawSchedule(t, 3), drawRun(t)
		whole := make([]bool, len(run)-1)
		order := make([]int, len(run)-1)
		for i := range whole {
			whole[i], order[i] = s.Due(run[i], run[i+1]), i
		}
		for _, i := range rapid.Permutation(order).Draw(t, "order") {
			if s.Due(run[i], run[i+1]) != whole[i] {
				t.Fatalf("%s changed its mind about turn %d", s, i+1)
			}
		}
	})
}

// No division of a run into iterations loses or doubles marks, also for iterations over the points of phases.
func TestSchedule_lawOfCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		which := rapid.IntRange(0, dates-1).Draw(t, "unit")
		u, n, m := units[which], rapid.Int64Range(1, 20).Draw(t, "from"), rapid.Int64Range(1, 20).Draw(t, "long")
		parts := []specimen{marking(t, which), marking(t, which), marking(t, which)}
		s := parts[0].Schedule.Or(parts[1].Schedule).Then(u.period(n), parts[1].Schedule).Then(
			u.period(n+m), parts[2].Schedule)

		at := func(x int64) loop.Elapsed {
			return loop.Elapsed{Steps: x, Samples: x, Time: time.Duration(x), Date: noon + loop.Date(x)}
		}
		turn := func(i int, x, zero int64) bool { return parts[i].due(at(x-1-zero), at(x-zero)) }
		cuts := rapid.SliceOfNDistinct(rapid.Int64Range(0, 80), 2, 12, rapid.ID).Draw(t, "cuts")
		slices.Sort(cuts)
		for i, to := range cuts[1:] {
			want := false
			for x := cuts[i] + 1; x <= to; x++ { // the reference goes one by one
				switch {
				case x <= n:
					want = want || turn(0, x, 0) || turn(1, x, 0)
				case x <= n+m:
					want = want || turn(1, x, n)
				default:
					want = want || turn(2, x, n+m)
				}
			}
			if s.Due(at(cuts[i]), at(to)) != want {
				t.Fatalf("%s from %d to %d: due should be %t", s, cuts[i], to, want)
			}
		}
	})
}

func TestSchedule_lawsOfLogic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, run := drawSchedule(t, 2).Schedule, drawSchedule(t, 2).Schedule, drawRun(t)
		for name, pair := range map[string][2]loop.Schedule{
			"twice not":                     {a, a.Not().Not()},
			"not any":                       {a.Or(b).Not(), a.Not().And(b.Not())},
			"not all":                       {a.And(b).Not(), a.Not().Or(b.Not())},
			"any order":                     {a.Or(b), b.Or(a)},
			"all order":                     {a.And(b), b.And(a)},
			"one":                           {a.Or(), a.And()},
			"never adds nothing":            {a, a.Or(loop.Never)},
			"each takes nothing":            {a, a.And(loop.EachStep)},
			"a or not a":                    {loop.EachStep, a.Or(a.Not())},
			"the ends say nothing of turns": {a, a.AndAtStart().AndAtEnd()},
		} {
			for i, after := range run[1:] {
				if pair[0].Due(run[i], after) != pair[1].Due(run[i], after) {
					t.Fatalf("%s: %s against %s in turn %d", name, pair[0], pair[1], i+1)
				}
			}
		}
	})
}

func TestNever_lawOfUnreachable(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		s, run := drawSchedule(t, 3), drawRun(t)
		until := rapid.Int64Range(0, 40).Draw(t, "until")
		if !s.IsNever(loop.Steps(until)) {
			return
		}
		found++
		for i, after := range run[1:min(len(run), int(until)+1)] {
			if s.Due(run[i], after) {
				t.Fatalf("%s is never until %d, yet due in turn %d", s, until, after.Steps)
			}
		}
	})
	t.Logf("%d schedules were unreachable, none of them fired", found)
}
