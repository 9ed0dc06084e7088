package series_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/series"
)

// The numbers are pandas' (testdata/series.py).
func TestPast_equalsPandas(t *testing.T) {
	g := readGolden(t)
	sales, texts := make([]float64, len(g.Sales)), make([]string, len(g.Sales))
	for i, v := range g.Sales {
		if sales[i] = math.NaN(); v != nil {
			sales[i], texts[i] = *v, strconv.FormatFloat(*v, 'g', -1, 64)
		}
	}
	n := []int{1, 2, 5}
	p := series.Past{Columns: []string{"sales"}, Group: "shop", Lags: []int{1, 3, 12}, Means: n, Mins: n, Maxs: n, Stds: n}
	for _, column := range []any{sales, texts} {
		got, err := p.Of(set(t, data.Named("shop", g.Shop, len(sales)), data.Named("sales", column, len(sales))))
		require.NoError(t, err)
		require.Len(t, got.Fields(), 2+15)
		require.Len(t, g.Past, 15)
		for name, want := range g.Past {
			for i, v := range values[float64](t, got, name) {
				if want[i] == nil {
					require.True(t, math.IsNaN(v), "%s of row %d is %v", name, i, v)
				} else {
					require.InDelta(t, *want[i], v, 1e-9, "%s of row %d", name, i)
				}
			}
		}
	}
}

func TestPast_refuses(t *testing.T) {
	table := set(t, data.Named("v", []float32{1, 2}, 2), data.Named("name", []string{"a", "b"}, 2))
	for want, p := range map[string]series.Past{
		"the Columns are empty":                  {Lags: []int{1}},
		"a lag of 0 rows, expected at least 1":   {Columns: []string{"v"}, Lags: []int{0}},
		`column "name": row 1: "a" is not a num`: {Columns: []string{"name"}, Lags: []int{1}},
		`no column "w"`:                          {Columns: []string{"w"}, Lags: []int{1}},
	} {
		_, err := p.Of(table)
		require.ErrorContains(t, err, "series: past: ")
		require.ErrorContains(t, err, want)
	}
}

// Values are filled within a group, before windows and before the other columns.
func TestPast_fillsForward(t *testing.T) {
	nan := math.NaN()
	texts := []string{"", "1", "2", "", "", "3"}
	table := set(t, data.Named("hour", []int32{1, 1, 2, 2, 3, 3}, 6), data.Named("shop", []string{"a", "b", "a", "b", "a", "b"}, 6), data.Named("v", texts, 6))
	filled, err := series.Past{Columns: []string{"v"}, Group: "shop", Time: "hour", Forward: true, Lags: []int{1}}.Of(table)
	require.NoError(t, err)
	require.Equal(t, texts, values[string](t, table, "v"))
	require.InDeltaSlice(t, []float64{nan, 1, 2, 1, 2, 3}, values[float64](t, filled, "v"), 0)
	require.InDeltaSlice(t, []float64{nan, nan, nan, 1, 2, 1}, values[float64](t, filled, "v lag 1"), 0)
	windows, err := series.Windows{Length: 1, Columns: []string{"v"}, Targets: []string{"v"}, Group: "shop", Time: "hour"}.Of(filled)
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{nan, 2, 1, 1}, values[float64](t, windows, "v"), 0)
}
