package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// firings are the steps in which a schedule is due in a run of n turns, with batches of one example and a second each.
func firings(s loop.Schedule, n int64) (at []int64) {
	before := loop.Elapsed{Date: noon}
	for range n {
		after := loop.Elapsed{Steps: before.Steps + 1, Samples: before.Samples + 1, Time: before.Time + time.Second, Date: before.Date + loop.Date(time.Second)}
		if s.Due(before, after) {
			at = append(at, after.Steps)
		}
		before = after
	}
	return at
}

func seconds(n int) loop.Time { return loop.Time(time.Duration(n) * time.Second) }

func later(n int) loop.Date { return noon + loop.Date(seconds(n)) }

func every(n int64) loop.Schedule { return loop.Every(loop.Steps(n)) }

// Ciclo counts before a step: every(2) is due at 0, 2, 4, …; lazo counts finished steps.
func TestB13_every(t *testing.T) {
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, firings(every(1), 10))
	require.Equal(t, []int64{2, 4, 6, 8, 10}, firings(every(2), 10))
	require.True(t, every(2).AndAtStart().StartsAt(), "Ciclo's firing at 0")
	t.Logf("B13: every 2 in 10 turns: %v", firings(every(2), 10))
}

// Ciclo fires at 3 and 8: its first period is empty.
func TestB14_afterEvery(t *testing.T) {
	s := loop.Never.Then(loop.Steps(3), loop.Every(loop.Steps(5)))
	require.Equal(t, []int64{8}, firings(s, 10))
	require.Equal(t, []int64{8, 13, 18}, firings(s, 20))
	t.Logf("B14: %s in 20 turns: %v", s, firings(s, 20))
}

func TestSchedules(t *testing.T) {
	odd := loop.When("odd", func(_, after loop.Elapsed) bool { return after.Steps%2 == 1 })
	for _, row := range []struct {
		name     string
		schedule loop.Schedule
		at       []int64 // in 12 turns
	}{
		{"never", loop.Schedule{}, nil},
		{"never", loop.Never, nil},
		{"each step", loop.EachStep, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{"at start", loop.AtStart, nil},
		{"at end", loop.AtEnd, nil},
		{"at end", loop.Schedule{}.AndAtEnd(), nil},
		{"every 5 steps, at start, at end", every(5).AndAtStart().AndAtEnd(), []int64{5, 10}},
		{"(every 5 steps, at end) or at start", every(5).AndAtEnd().Or(loop.AtStart), []int64{5, 10}},
		{"every 5 samples", loop.Every(loop.Samples(5)), []int64{5, 10}},
		{"every 5s", loop.Every(seconds(5)), []int64{5, 10}},
		{"at 3 steps", loop.At(loop.Steps(3)), []int64{3}},
		{"at 2025-03-01T12:00:03Z", loop.At(later(3)), []int64{3}},
		{"at 2025-03-01T11:59:59Z", loop.At(later(-1)), nil},
		{"after 10 steps", loop.After(loop.Steps(10)), []int64{10, 11, 12}},
		{"after 2025-03-01T12:00:10Z", loop.After(later(10)), []int64{10, 11, 12}},
		{"after 2025-03-01T11:59:59Z, at 2 steps", loop.Never.Then(later(-1), loop.At(loop.Steps(2))), []int64{2}},
		{"not after 3 steps", loop.After(loop.Steps(3)).Not(), []int64{1, 2}},
		{"after 10 steps, each step", loop.Never.Then(loop.Steps(10), loop.EachStep), []int64{11, 12}},
		{"after 4s, every 3s", loop.Never.Then(seconds(4), loop.Every(seconds(3))), []int64{7, 10}},
		{"after 4 steps, every 3s", loop.Never.Then(loop.Steps(4), loop.Every(seconds(3))), []int64{6, 9, 12}}, // the step says nothing of the time
		{"after 8 steps, (every 2 steps or odd)", loop.Never.Then(loop.Steps(8), every(2).Or(odd)), []int64{9, 10, 11, 12}},
		{"odd and not every 3 steps", odd.And(every(3).Not()), []int64{1, 5, 7, 11}},
		{"not (every 2 steps or every 3 steps)", every(2).Or(every(3)).Not(), []int64{1, 5, 7, 11}},
		{"each step; after 3 steps, every 2 steps; after 8 steps, every 3 steps", loop.EachStep.Then(
			loop.Steps(3), every(2)).Then(
			loop.Steps(8), every(3)),
			[]int64{1, 2, 3, 5, 7, 11}},
		{"after 2025-03-01T12:00:02Z, each step; after 2025-03-01T12:00:04Z, never", loop.Never.Then(
			later(2), loop.EachStep).Then(
			later(4), loop.Never),
			[]int64{3, 4}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.NoError(t, row.schedule.Err())
			require.Equal(t, row.name, row.schedule.String())
			require.Equal(t, row.at, firings(row.schedule, 12))
			before, after := loop.Elapsed{Steps: 4, Date: noon}, loop.Elapsed{Steps: 5, Date: noon + loop.Date(time.Second)}
			require.Zero(t, testing.AllocsPerRun(100, func() { row.schedule.Due(before, after) }))
		})
	}
}

func TestSchedules_startAndEnd(t *testing.T) {
	both := every(2).AndAtStart().AndAtEnd()
	for _, row := range []struct {
		name         string
		schedule     loop.Schedule
		starts, ends bool
	}{
		{"plain", every(2), false, false},
		{"start", every(2).AndAtStart(), true, false},
		{"end", loop.AtEnd, false, true},
		{"any has what one has", loop.AtStart.Or(every(2).AndAtEnd()), true, true},
		{"all has what each has", loop.AtStart.And(both), true, false},
		{"not is of turns", both.Not(), false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.NoError(t, row.schedule.Err())
			require.Equal(t, row.starts, row.schedule.StartsAt())
			require.Equal(t, row.ends, row.schedule.EndsAt())
		})
	}
}

// A turn of many samples may reach two phases; each is asked about its own part of the turn.
func TestPiecewise_aTurnAcrossAPoint(t *testing.T) {
	s := loop.Every(loop.Samples(4)).Then(loop.Samples(10), loop.Every(loop.Samples(3))).Then(
		loop.Samples(20), loop.At(loop.Samples(1)))

	for _, row := range []struct {
		from, to int64
		due      bool
	}{
		{0, 3, false}, {3, 4, true}, {4, 9, true}, {8, 10, false}, {8, 12, false}, {8, 13, true}, {10, 12, false},
		{10, 13, true}, {19, 20, false}, {19, 21, true}, {20, 21, true}, {21, 99, false}, {7, 22, true}, {0, 99, true},
	} {
		require.Equal(t, row.due, s.Due(loop.Elapsed{Samples: row.from}, loop.Elapsed{Samples: row.to}), "%d to %d", row.from, row.to)
	}
	still := loop.Elapsed{Samples: 10}
	untilTen := loop.EachStep.Then(loop.Samples(10), loop.Never)
	fromTen := loop.Never.Then(loop.Samples(10), loop.EachStep)
	require.False(t, untilTen.Due(still, still), "an empty batch at the point is behind it")
	require.True(t, fromTen.Due(still, still))
	var seen []int64
	zero := loop.When("zero", func(before, after loop.Elapsed) bool {
		seen = append(seen, before.Samples, after.Samples)
		return false
	})
	seen = nil // the calls by When itself
	zero.Then(loop.Samples(10), zero).Then(loop.Samples(20), zero).
		Due(loop.Elapsed{Samples: 8}, loop.Elapsed{Samples: 23})
	require.Equal(t, []int64{8, 10, 0, 10, 0, 3}, seen, "the parts of a turn from 8 to 23")
}

func TestNever(t *testing.T) {
	odd := loop.When("odd", func(_, after loop.Elapsed) bool { return after.Steps%2 == 1 })
	for _, row := range []struct {
		schedule loop.Schedule
		never    bool // in a run until 10 steps
	}{
		{loop.Never, true},
		{loop.AtEnd, false},
		{loop.EachStep, false},
		{every(5), false},
		{every(100), true},
		{every(100).AndAtStart(), false},
		{loop.At(loop.Steps(10)), false},
		{loop.At(loop.Steps(11)), true},
		{loop.After(loop.Steps(50)), true},
		{loop.After(loop.Steps(10)), false},
		{loop.After(loop.Steps(10)).Not(), false},
		{loop.EachStep.Not(), true},
		{loop.Never.Then(loop.Steps(10), loop.Every(loop.Steps(5))), true},
		{odd, false},
		{loop.Every(loop.Samples(100)), false}, // batches may be of any size
		{loop.At(loop.Samples(10)), false},
		{loop.Every(seconds(100)), false},
		{loop.At(seconds(10)), false},
		{loop.At(later(20)), false},
		{every(5).Or(loop.Every(seconds(1))), false},
		{loop.EachStep.Or(loop.Every(seconds(1))), false},
		{every(100).Or(every(70)), true},
		{every(5).And(odd), false},
		{every(5).And(loop.After(seconds(20))), false},
		{every(5).And(loop.Never), true},
		{every(5).Then(loop.Steps(14), every(7)), false},
		{every(13).Then(loop.Steps(14), every(7)), true},
		{every(13).Then(loop.Steps(14), loop.Every(seconds(7))), true},
		{every(5).Then(loop.Steps(14), loop.Every(seconds(7))), false},
		{every(5).Then(seconds(14), every(3)), false},
	} {
		t.Run(row.schedule.String(), func(t *testing.T) {
			require.Equal(t, row.never, row.schedule.IsNever(loop.Steps(10)))
		})
	}
	require.False(t, loop.At(loop.Samples(10)).IsNever(loop.Samples(5)), "the last batch may be a large one")
	require.True(t, loop.Never.IsNever(nil))
	require.False(t, every(100).IsNever(nil))
}
