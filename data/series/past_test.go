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
