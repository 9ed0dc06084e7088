package loop_test

import (
	"context"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// The wall clock is set back and ahead while time passes. Schedules by time must not change.
func TestF36_timeSchedulesDoNotReadTheWallClock(t *testing.T) {
	s := loop.Every(seconds(3)).Then(seconds(10), loop.Every(seconds(2)))
	want, jumps := firings(s, 20), 0
	var got []int64
	before := loop.Elapsed{Date: noon}
	for i := range int64(20) {
		after := loop.Elapsed{Steps: i + 1, Time: before.Time + time.Second, Date: before.Date + loop.Date(time.Second)}
		switch i {
		case 7:
			after.Date, jumps = after.Date-loop.Date(time.Hour), jumps+1
		case 13:
			after.Date, jumps = after.Date+loop.Date(2*time.Hour), jumps+1
		}
		if s.Due(before, after) {
			got = append(got, after.Steps)
		}
		before = after
	}
	require.Equal(t, []int64{3, 6, 9, 12, 14, 16, 18, 20}, want)
	require.Equal(t, want, got)
	t.Logf("F36: %d jumps of the clock, %d of %d firings where they were", jumps, len(got), len(want))
}

// The clock that a run counts by, when the one on the wall was set back or ahead by an hour since its start.
func TestF36_aRunCountsByTheMonotonicClock(t *testing.T) {
	now := time.Now()
	jumped := loop.JumpedWall(now, 3600)
	require.Equal(t, time.Hour, jumped.Round(0).Sub(now.Round(0)), "the walls differ")
	require.Zero(t, jumped.Sub(now), "what the monotonic clock says does not")
	for _, seconds := range []int64{-3600, 3600} {
		e := loop.Jumped(loop.Elapsed{Time: time.Minute}, seconds)
		require.GreaterOrEqual(t, e.Time, time.Minute)
		require.Less(t, e.Time, 2*time.Minute)
		require.WithinDuration(t, now, time.Unix(0, int64(e.Date)), time.Minute)
	}
	t.Log("F36: a clock that is set by an hour, both ways, moves neither the time nor the date of a run")
}

func TestF37_absurdSchedules(t *testing.T) {
	bad := every(0)
	const huge = 1 << 62
	cases := 0
	for _, row := range []struct {
		name     string
		schedule loop.Schedule
		err      string // empty: the schedule is only due as stated
	}{
		{"every zero", bad, "period must be positive, got 0 steps"},
		{"every negative", loop.Every(loop.Samples(-1)), "period must be positive, got -1 samples"},
		{"every smallest", every(math.MinInt64), "period must be positive, got -9223372036854775808 steps"},
		{"every nil", loop.Every(nil), `schedule "every" has no period`},
		{"every date", loop.Every(later(1)), "a date has no length to repeat: got 2025-03-01T12:00:01Z; use At or After"},
		{"every huge", every(huge), ""},
		{"every largest", every(math.MaxInt64), ""},
		{"at zero", loop.At(seconds(0)), "period must be positive, got 0s"},
		{"at no date", loop.At(loop.Date(0)), "the date is not set or before 1970, got 1970-01-01T00:00:00Z"},
		{"at huge", loop.At(loop.Samples(huge)), ""},
		{"at a date far away", loop.At(loop.Date(math.MaxInt64)), ""},
		{"after nil", loop.After(nil), `schedule "after" has no period`},
		{"after nil every", loop.Never.Then(nil, loop.Every(loop.Steps(1))), `schedule "after" has no period`},
		{"after every zero", loop.Never.Then(loop.Steps(1), loop.Every(loop.Steps(0))), "every 0 steps: period must be positive, got 0 steps"},
		{"after huge every huge", loop.Never.Then(loop.Steps(huge), loop.Every(loop.Steps(huge))), ""},
		{"at end in a phase", loop.Never.Then(loop.Steps(1), loop.AtEnd),
			"at end: a phase has no start and end of the run; put AndAtStart and AndAtEnd after the whole schedule"},
		{"when without function", loop.When("", nil), `schedule "when" has no function`},
		{"any of bad ones", bad.Or(loop.EachStep, loop.At(nil)),
			"every 0 steps: period must be positive, got 0 steps\nat: schedule \"at\" has no period"},
		{"nested deeply", loop.EachStep.And(bad.AndAtEnd().Not().Or(loop.EachStep)).Not(),
			"every 0 steps: period must be positive, got 0 steps"},
		{"not bad", bad.Not(), "every 0 steps: period must be positive, got 0 steps"},
		{"phases out of order", loop.EachStep.Then(loop.Steps(9), loop.EachStep).Then(loop.Steps(9), loop.EachStep),
			"points must be ascending, got 9 steps after 9 steps"},
		{"dates out of order", loop.EachStep.Then(later(9), loop.EachStep).Then(later(8), loop.EachStep),
			"points must be ascending, got 2025-03-01T12:00:08Z after 2025-03-01T12:00:09Z"},
		{"bad phases", bad.Then(nil, loop.EachStep), "every 0 steps: period must be positive, got 0 steps\nschedule \"after\" has no period"},
		{"a bad phase after a good one", loop.EachStep.Then(loop.Steps(1), bad), "every 0 steps: period must be positive, got 0 steps"},
		{"huge phases", loop.Never.Then(loop.Steps(huge), loop.EachStep).Then(loop.Steps(math.MaxInt64), loop.EachStep), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.err != "" {
				require.EqualError(t, row.schedule.Err(), row.err)
			} else {
				require.NoError(t, row.schedule.Err())
			}
			for _, x := range []int64{0, 1, 1 << 40, huge - 1, huge, huge + 1, math.MaxInt64 - 1} {
				now := loop.Elapsed{Steps: x, Samples: x, Time: time.Duration(x), Date: noon + loop.Date(x)}
				after := loop.Elapsed{Steps: x + 1, Samples: x + 1, Time: time.Duration(x + 1), Date: noon + loop.Date(x+1)}
				due := row.schedule.Due(now, after)
				if row.err != "" {
					require.False(t, due, "an invalid schedule is never due")
				}
			}
			cases++
		})
	}
	t.Logf("F37: %d absurd schedules, 0 panics, none due too early or where it is invalid", cases)
}

func TestF37_hugePeriodsFireWhereTheySay(t *testing.T) {
	at := func(x int64) loop.Elapsed { return loop.Elapsed{Samples: x} }
	const huge = 1 << 62
	for _, row := range []struct {
		name     string
		schedule loop.Schedule
		at       []int64
	}{
		{"every", loop.Every(loop.Samples(huge)), []int64{huge}},
		{"at", loop.At(loop.Samples(huge)), []int64{huge}},
		{"after every", loop.Never.Then(loop.Samples(huge), loop.Every(loop.Samples(1<<60))), []int64{huge + 1<<60, huge + 3<<60}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, x := range row.at {
				require.False(t, row.schedule.Due(at(x-2), at(x-1)), x)
				require.True(t, row.schedule.Due(at(x-1), at(x)), x)
				require.False(t, row.schedule.Due(at(x+2), at(x+3)), x)
			}
			require.False(t, row.schedule.Due(at(math.MaxInt64-2), at(math.MaxInt64-1)), "beyond the last")
		})
	}
}

// A function that depends on epochs is due at their ends, whatever else the run counts.
func TestWhen_countsEpochs(t *testing.T) {
	ends := loop.When("the end of an epoch", func(before, after loop.Elapsed) bool { return after.Epochs > before.Epochs })
	third := loop.When("from the third epoch on", func(_, after loop.Elapsed) bool { return after.Epochs >= 3 })
	for name, until := range map[string][]loop.Option{"the data": nil, "steps": {loop.Until(loop.Steps(20))}, "epochs": {loop.Until(loop.Epochs(5))}} {
		var at, late []int64
		note := func(into *[]int64) func(context.Context, loop.Report) error {
			return func(_ context.Context, r loop.Report) error { *into = append(*into, r.Elapsed.Steps); return nil }
		}
		source := loop.From(func(position int64) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for i := position % 4; i < 4 && yield(int(i), nil); i++ {
				}
			}
		})
		options := append(until, loop.Watch(ends, note(&at)), loop.Watch(third, note(&late)))
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, source, options...)
		require.NoError(t, err, name)
		switch name {
		case "epochs":
			require.Equal(t, []int64{4, 8, 12, 16, 20}, at)
			require.Equal(t, []int64{12, 13, 14, 15, 16, 17, 18, 19, 20}, late)
		default: // the source ends after an epoch
			require.Equal(t, []int64{4}, at, name)
			require.Empty(t, late)
			require.EqualValues(t, 1, result.Elapsed.Epochs)
		}
	}
	// It may look at the rest of what has elapsed too.
	rest := map[string]func(e loop.Elapsed) bool{
		"steps": func(e loop.Elapsed) bool { return e.Steps > 500 },
		"time":  func(e loop.Elapsed) bool { return e.Time > 0 },
		"date":  func(e loop.Elapsed) bool { return e.Date > 0 },
	}
	for name, also := range rest {
		due := 0
		both := loop.When(name, func(before, after loop.Elapsed) bool { return also(after) && after.Epochs > before.Epochs })
		thousand := loop.Data[int](func(yield func(int, error) bool) {
			for i := 0; i < 1000 && yield(i, nil); i++ {
			}
		})
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, thousand,
			loop.Watch(both, func(context.Context, loop.Report) error { due++; return nil }))
		require.NoError(t, err, name)
		require.Equal(t, 1, due, name)
	}
}
