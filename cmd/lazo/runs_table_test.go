package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/runs"
	"github.com/lazo-ml/lazo/loop"
)

func someRuns() []runs.Run {
	return []runs.Run{
		{Name: "a", Status: "ended", Steps: 10, Duration: 90 * time.Second, Settings: map[string]string{"rate": "0.1", "seed": "1", "kind": "x"},
			Values: map[string]runs.Value{"losses.loss": {Last: 2, Best: 1, Mode: loop.Lowest}, "metrics.size": {Last: 3, Best: math.NaN()}}},
		{Name: "b", Steps: 9, Duration: 1500 * time.Millisecond, Settings: map[string]string{"rate": "1e-3", "seed": "1"},
			Values: map[string]runs.Value{"losses.loss": {Last: 1.0 / 3, Best: math.NaN(), Mode: loop.Lowest}, "stateful.size": {Last: 4, Best: math.NaN()}}},
		{Name: "c", Status: "failed", Steps: 100, Duration: time.Hour, Why: "boom"},
	}
}

func (t *runsTable) texts(column string) (all []string) {
	i, err := t.column(column)
	if err != nil {
		return nil
	}
	for _, r := range t.Rows {
		all = append(all, r[i].Text)
	}
	return all
}

// Settings have a column if they differ, or a run lacks them. Two entries of one name have their collections, and only
// entries that have a best value have its column.
func TestTableOf(t *testing.T) {
	table := tableOf(someRuns())
	require.Equal(t, []string{"name", "status", "steps", "duration", "kind", "rate", "best loss", "last loss", "last metrics.size", "last stateful.size", "end"}, table.Columns)
	require.Equal(t, []string{"ended", "unknown", "failed"}, table.texts("status"))
	require.Equal(t, []string{"90", "1.5", "3600"}, table.texts("duration"), "seconds")
	require.Equal(t, []string{"x", "", ""}, table.texts("kind"))
	require.Equal(t, []string{"1", "", ""}, table.texts("best loss"))
	require.Equal(t, []string{"2", "0.3333333333333333", ""}, table.texts("last loss"))
	require.Equal(t, "0.333333", table.Rows[1][7].Shown)
	require.Equal(t, "1m30s", table.Rows[0][3].Shown)
}

// Numbers come before texts and texts before empty cells, in both directions.
func TestRunsTable_sort(t *testing.T) {
	table := &runsTable{Columns: []string{"x"}}
	for _, text := range []string{"", "b", "10", "a", "9", "1e1", "NaN"} {
		table.Rows = append(table.Rows, runsRow{valueCell(text)})
	}
	require.NoError(t, table.sort("x"))
	require.Equal(t, []string{"9", "10", "1e1", "NaN", "a", "b", ""}, table.texts("x"))
	require.NoError(t, table.sort("-x"))
	require.Equal(t, []string{"10", "1e1", "9", "b", "a", "NaN", ""}, table.texts("x"))
	require.EqualError(t, table.sort("y"), `there is no column "y"; the columns are "x"`)
	require.EqualError(t, table.sort("-y"), `there is no column "y"; the columns are "x"`)
}

// A number is compared with a text by = and != alone, and an empty cell is never kept.
func TestRunsTable_filter(t *testing.T) {
	for filter, want := range map[string][]string{
		"rate = 0.001": {"b"}, "rate != 0.001": {"a"}, "rate < fast": nil, "rate != fast": {"a", "b"}, "rate ~ e-": {"b"},
		"duration >= 1m30s": {"a", "c"}, "duration < 2": {"b"}, "steps <= 10": {"a", "b"}, "steps > 10": {"c"}, "last loss < 1": {"b"}, "name >= b": {"b", "c"},
	} {
		table := tableOf(someRuns())
		require.NoError(t, table.filter(filter), filter)
		require.Equal(t, want, table.texts("name"), filter)
	}
	table := tableOf(someRuns())
	require.ErrorContains(t, table.filter("rate=1"), `the filter "rate=1" is not 'COLUMN OP VALUE'`)
	require.ErrorContains(t, table.filter("speed = 1"), `there is no column "speed"; the columns are "name", `)
	require.Len(t, table.Rows, 3, "an error takes no row out")
}
