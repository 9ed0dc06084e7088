package loop_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// noon is where runs begin whose dates are looked at.
var noon = loop.Date(time.Date(2025, time.March, 1, 12, 0, 0, 0, time.UTC).UnixNano())

// Ciclo compares an elapsed with operators: less-or-equal holds through the 10th update and "greater" from the 11th.
// Here there is one question, and it turns once.
func TestB17_reachedTurnsOnceAtThePeriod(t *testing.T) {
	turned := 0
	var e loop.Elapsed
	for range 20 {
		was := e.Reached(loop.Steps(10))
		e.Steps++
		require.Equal(t, e.Steps >= 10, e.Reached(loop.Steps(10)), e.Steps)
		if was != e.Reached(loop.Steps(10)) {
			turned++
		}
	}
	require.Equal(t, 1, turned)
	t.Logf("B17: reached turned %d time in 20 steps, at step 10", turned)
}

func TestD02_whatIsBeyondAPeriodHasReachedIt(t *testing.T) {
	for _, row := range []struct {
		name    string
		elapsed loop.Elapsed
		period  loop.Period
		reached bool
	}{
		{"nothing reaches nil", loop.Elapsed{Steps: 9}, nil, false},
		{"zero is reached by nothing done", loop.Elapsed{}, loop.Steps(0), true},
		{"below", loop.Elapsed{Steps: 9}, loop.Steps(10), false},
		{"at", loop.Elapsed{Steps: 10}, loop.Steps(10), true},
		{"a resume beyond the end", loop.Elapsed{Steps: 12}, loop.Steps(10), true},
		{"beyond the largest", loop.Elapsed{Steps: 1 << 62}, loop.Steps(1 << 62), true},
		{"a jump over samples", loop.Elapsed{Samples: 130}, loop.Samples(128), true},
		{"time", loop.Elapsed{Time: time.Hour}, loop.Time(time.Hour), true},
		{"time to come", loop.Elapsed{Time: time.Hour - 1}, loop.Time(time.Hour), false},
		{"date", loop.Elapsed{Date: noon}, noon, true},
		{"date in another zone", loop.Elapsed{Date: loop.Date(noon.Time().In(time.FixedZone("", 3600)).UnixNano())}, noon, true},
		{"date to come", loop.Elapsed{Date: noon - 1}, noon, false},
		{"date before 1970", loop.Elapsed{Date: -2}, loop.Date(math.MaxInt64), false},
		{"no date known", loop.Elapsed{}, noon, false},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.reached, row.elapsed.Reached(row.period)) })
	}
}

func TestPeriod_names(t *testing.T) {
	for want, p := range map[string]loop.Period{
		"1 step": loop.Steps(1), "500 steps": loop.Steps(500), "1 sample": loop.Samples(1), "0 samples": loop.Samples(0),
		"1m30s": loop.Time(90 * time.Second), "2025-03-01T12:00:00Z": noon,
	} {
		require.Equal(t, want, p.String())
	}
}

// In Ciclo the time of a difference counts from the start of the right operand's run.
func TestD05_sinceIsATrueDifference(t *testing.T) {
	best := loop.Elapsed{Steps: 100, Samples: 6400, Time: time.Hour, Date: noon}
	now := loop.Elapsed{Steps: 103, Samples: 6500, Time: time.Hour + time.Minute, Date: noon + loop.Date(time.Minute)}
	waited := now.Since(best)
	require.Equal(t, loop.Elapsed{Steps: 3, Samples: 100, Time: time.Minute, Date: now.Date}, waited)
	require.False(t, waited.Reached(loop.Time(10*time.Minute)), "a patience of 10 minutes is not over after one")
	require.Equal(t, now, now.Since(loop.Elapsed{}))
	t.Logf("D05: %s since the best value, %s since the start", waited.Time, now.Time)
}

func elapsed() *rapid.Generator[loop.Elapsed] {
	return rapid.Custom(func(t *rapid.T) loop.Elapsed {
		passed := time.Duration(rapid.Int64Range(0, 30).Draw(t, "time"))
		return loop.Elapsed{
			Steps: rapid.Int64Range(0, 30).Draw(t, "steps"), Samples: rapid.Int64Range(0, 30).Draw(t, "samples"),
			Time: passed, Date: noon + loop.Date(passed),
		}
	})
}

// Ciclo's periods of several units are both reached and not reached; one unit cannot be.
func TestD12_aPeriodLooksAtItsOwnUnitOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := elapsed().Draw(t, "a"), elapsed().Draw(t, "b")
		n := rapid.Int64Range(1, 30).Draw(t, "period")
		mixed := loop.Elapsed{Steps: a.Steps, Samples: b.Samples, Time: a.Time, Date: b.Date}
		require.Equal(t, a.Steps >= n, mixed.Reached(loop.Steps(n)))
		require.Equal(t, b.Samples >= n, mixed.Reached(loop.Samples(n)))
		require.Equal(t, int64(a.Time) >= n, mixed.Reached(loop.Time(n)))
		require.Equal(t, int64(b.Time) >= n, mixed.Reached(noon+loop.Date(n)))
	})
	first := loop.At(loop.Steps(10)).Or(loop.At(loop.Samples(4)))
	require.True(t, first.Due(loop.Elapsed{Steps: 1, Samples: 3}, loop.Elapsed{Steps: 2, Samples: 6}), "whichever comes first is said with Any")
}

// Of two moments exactly one is the earlier, and a difference brings them together again.
func TestSince_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := elapsed().Draw(t, "a"), elapsed().Draw(t, "b")
		d := b.Since(a)
		require.Equal(t, b.Steps, a.Steps+d.Steps)
		require.Equal(t, b.Samples, a.Samples+d.Samples)
		require.Equal(t, b.Time, a.Time+d.Time)
		require.Equal(t, b.Date, d.Date)
	})
}

func TestDate_ofATime(t *testing.T) {
	require.Equal(t, time.Unix(1, 1).UTC(), loop.Date(time.Unix(1, 1).UnixNano()).Time())
	for _, no := range []time.Time{{}, time.Unix(-1, 0)} {
		require.ErrorContains(t, loop.At(loop.Date(no.UnixNano())).Err(), "the date is not set or before 1970")
	}
}
