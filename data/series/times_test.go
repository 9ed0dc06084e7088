package series_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/series"
)

// Dates and numbers have their own order, also as texts.
func TestTime_hasItsOrder(t *testing.T) {
	for _, times := range []any{
		[]string{"9", "10", "11.5"}, []float64{-1, 0.5, 7}, []uint64{1, 2, 1 << 63}, []int32{-5, 0, 5}, []string{"2025-12", "2026-01", "2026-02"},
		[]string{"2026-01-31 09:00", "2026-01-31 10:00:05", "2026-02-01"}, []string{"2026-01-31T23:30:00Z", "2026-01-31T23:30:00-01:00", "2026-02-01T02:00:00Z"},
	} {
		w := series.Windows{Length: 2, Targets: []string{"v"}, Time: "t"}
		_, err := w.Of(set(t, data.Named("t", times, 3), data.Named("v", []float32{1, 2, 3}, 3)))
		require.NoError(t, err, "%v", times)
		backward, err := set(t, data.Named("t", times, 3), data.Named("v", []float32{1, 2, 3}, 3)).Gather([]int{0, 2, 1})
		require.NoError(t, err)
		_, err = w.Of(backward)
		require.ErrorContains(t, err, "row 3 is not later than row 2", "%v", times)
	}
	for want, times := range map[string]any{
		`the time "t": row 1: "31.1.2026" is not a number, nor a date as 2026-01-31`: []string{"31.1.2026", "1.2.2026"},
		`the time "t": row 2: "2026-13-01" is not a date as 2026-01-31`:              []string{"2026-01-01", "2026-13-01"},
		`the time "t": row 2: the time is missing`:                                   []string{"1", ""},
		`the time "t": row 1: the time is missing`:                                   []string{"", "2026-01-02"},
		`the time "t": it is bool, not a number`:                                     []bool{false, true},
		`: row 2: the time is missing`:                                               []string{"2026-01-01", ""},
	} {
		_, err := series.Windows{Length: 1, Targets: []string{"v"}, Time: "t"}.Of(set(t, data.Named("t", times, 2), data.Named("v", []float32{1, 2}, 2)))
		require.ErrorContains(t, err, want)
	}
}
