package series_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/series"
)

type golden struct {
	Rows    [][]float64
	Windows []struct {
		Length, Horizon, Stride int
		X, Y                    [][][]float64
	}
	Shop  []string
	Sales []*float64
	Past  map[string][]*float64
}

func readGolden(t *testing.T) (g golden) {
	file, err := os.ReadFile("testdata/series.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(file, &g))
	return g
}

func flat[T any](deep [][]T) (all []T) {
	for _, part := range deep {
		all = append(all, part...)
	}
	return all
}

func set(t *testing.T, fields ...data.Field) *data.Set {
	s, err := data.New(fields...)
	require.NoError(t, err)
	return s
}

func values[T any](t *testing.T, s *data.Set, name string) []T {
	a, err := s.Field(name)
	require.NoError(t, err)
	return a.Flat.([]T)
}

// Windows are those of Keras (testdata/series.py).
func TestWindows_equalKeras(t *testing.T) {
	g := readGolden(t)
	table := set(t, data.X(flat(g.Rows), len(g.Rows), 2))
	require.Len(t, g.Windows, 4)
	for _, w := range g.Windows {
		got, err := series.Windows{Length: w.Length, Horizon: w.Horizon, Stride: w.Stride, Targets: []string{"x"}}.Of(table)
		require.NoError(t, err)
		want := set(t, data.X(flat(flat(w.X)), len(w.X), w.Length, 2), data.Named("next x", flat(flat(w.Y)), len(w.Y), w.Horizon, 2))
		require.Equal(t, want, got, "%+v", w)
	}
}

// days has two shops whose rows alternate, shop b from day 3 on.
func days(t *testing.T, n int) *data.Set {
	var shop, day []string
	var sales []float32
	for d := range n {
		for i, s := range []string{"a", "b"} {
			if s == "b" && d < 3 {
				continue
			}
			shop, day, sales = append(shop, s), append(day, fmt.Sprintf("2026-01-%02d", d+1)), append(sales, float32(100*i+d+1))
		}
	}
	return set(t, data.Named("shop", shop, len(shop)), data.Named("day", day, len(day)), data.Named("sales", sales, len(sales)))
}

func TestWindows_stayInTheirGroup(t *testing.T) {
	table := days(t, 10)
	w := series.Windows{Length: 3, Horizon: 2, Targets: []string{"sales"}, Group: "shop", Time: "day"}
	all, err := w.Of(table)
	require.NoError(t, err)
	require.Equal(t, 6+3, all.Len())
	x, y, shop, day := values[float32](t, all, "sales"), values[float32](t, all, "next sales"), values[string](t, all, "shop"), values[string](t, all, "day")
	for i := range all.Len() {
		first := x[3*i]
		require.Equal(t, []float32{first, first + 1, first + 2, first + 3, first + 4}, append(append([]float32{}, x[3*i:3*i+3]...), y[2*i:2*i+2]...))
		require.Equal(t, first > 100, shop[i] == "b")
		require.Equal(t, fmt.Sprintf("2026-01-%02d", int(first)%100+2), day[i])
	}
	last, err := w.Last(table)
	require.NoError(t, err)
	require.Equal(t, []float32{8, 9, 10, 108, 109, 110}, values[float32](t, last, "sales"))
	require.Equal(t, []string{"a", "b"}, values[string](t, last, "shop"))
	require.Len(t, last.Fields(), 3)
	w.Length = 8
	_, err = w.Last(table)
	require.EqualError(t, err, "series: last windows: the series that begins in row 5 has 7 rows, expected at least 8")
}

func TestSplit_sharesNoTargets(t *testing.T) {
	table := days(t, 20)
	w := series.Windows{Length: 4, Horizon: 3, Targets: []string{"sales"}, Group: "shop", Time: "day"}
	for _, fractions := range [][]float64{{0.7}, {0.5, 0.25}} {
		parts, err := w.Split(table, fractions...)
		require.NoError(t, err)
		require.Len(t, parts, len(fractions)+1)
		ends := []float32{0}
		sum := 0.0
		for _, f := range append(fractions, 1) {
			sum = min(sum+f, 1)
			ends = append(ends, float32(math.Round(20*sum)))
		}
		for k, part := range parts {
			least, most := float32(math.Inf(1)), float32(0)
			for i, v := range values[float32](t, part, "next sales") {
				day := v
				if v > 100 {
					day -= 100
				}
				require.Greater(t, day, ends[k], "part %d, target %d", k, i)
				require.LessOrEqual(t, day, ends[k+1])
				least, most = min(least, day), max(most, day)
			}
			require.Equal(t, ends[k+1], most)
			if k > 0 { // its history reaches back
				require.Equal(t, ends[k]+1, least)
				require.Equal(t, ends[k]-3, values[float32](t, part, "sales")[0])
			}
		}
	}
	for want, fractions := range map[string][]float64{
		"the fractions are [0.5 0.5]": {0.5, 0.5},
		"the fractions are [0]":       {0},
		"part 2 of 2, times 20 to 20 of 20: 37 rows in 2 series have no example of 4 rows and 3 targets": {0.96},
	} {
		_, err := w.Split(table, fractions...)
		require.ErrorContains(t, err, "series: split: "+want)
	}
}

func TestWindows_refuse(t *testing.T) {
	table := set(t, data.Named("t", []int64{1, 2, 2, 3}, 4), data.Named("v", []float32{1, 2, 3, 4}, 4), data.X([]float32{1, 2, 3, 4}, 4, 1))
	for want, w := range map[string]series.Windows{
		"the Length is 0, the Horizon 1 and the Stride 1":                {},
		"row 3 is not later than row 2 by \"t\": sort the table by time": {Length: 2, Time: "t"},
		"the Targets are empty":                                          {Length: 2},
		`no column "z"; there are ["t" "v" "x"]`:                         {Length: 2, Targets: []string{"z"}},
		`column "x" is float32 [4 1]`:                                    {Length: 2, Targets: []string{"v"}, Group: "x"},
		`the group "v" is float32`:                                       {Length: 2, Targets: []string{"v"}, Group: "v"},
		"4 rows in 1 series have no example of 4 rows":                   {Length: 4, Targets: []string{"v"}},
	} {
		_, err := w.Of(table)
		require.ErrorContains(t, err, "series: windows: ")
		require.ErrorContains(t, err, want)
	}
	mapped, err := table.MapBatches(func(b data.Batch) (data.Batch, error) { return b, nil })
	require.NoError(t, err)
	_, err = series.Windows{Length: 1, Targets: []string{"v"}}.Of(mapped)
	require.ErrorContains(t, err, "call this before MapBatches")
	_, err = series.Windows{Length: 1}.Last(nil)
	require.EqualError(t, err, "series: last windows: the table has no rows")
}
