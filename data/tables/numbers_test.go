package tables_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

// The figures of scikit-learn for the same columns: with NaN, constant, close together, and in whatever unit.
func TestPreparation_numbersAreThoseOfScikitLearn(t *testing.T) {
	g := readGolden(t)
	fills := map[string]tables.Fill{"mean": tables.FillMean, "median": tables.FillMedian, "most frequent": tables.FillMostFrequent, "value": tables.FillValue}
	scales := map[string]tables.Scale{"none": 0, "standard": tables.Standard, "minmax": tables.MinMax}
	require.Len(t, g.Prepared, 8*4*3)
	worst := 0.0
	for _, row := range g.Prepared {
		name := fmt.Sprint(row)
		cells := g.Numbers[row.Column]
		rule := tables.Numbers{Fill: fills[row.Fill], Scale: scales[row.Scale], Indicator: true}
		if row.Fill == "value" {
			rule.Value = -1.5
		}
		texts := column(t, "a", cells...)
		numbers := make([]float64, len(cells))
		for i, cell := range cells {
			numbers[i] = math.NaN()
			if cell != "" {
				var err error
				numbers[i], err = strconv.ParseFloat(cell, 64)
				require.NoError(t, err)
			}
		}
		floats, err := data.New(data.Named("a", numbers, len(numbers)))
		require.NoError(t, err)
		for _, table := range []*data.Set{texts, floats} {
			train, err := table.Slice(0, g.Train)
			require.NoError(t, err)
			test, err := table.Slice(g.Train, table.Len())
			require.NoError(t, err)
			p, err := tables.Fit(train, rule)
			require.NoError(t, err, name)
			set, err := test.Map(p.Apply)
			require.NoError(t, err, name)
			x := field(t, set, "x")
			require.Equal(t, []int{test.Len(), 2}, x.Dims)
			for i, want := range row.Test {
				got := float64(x.Flat.([]float32)[2*i])
				apart := math.Abs(got-want) / max(1, math.Abs(want))
				require.Less(t, apart, 2e-7, "%s, row %d: %v, expected %v", name, i, got, want)
				worst = max(worst, apart)
				require.Equal(t, g.Missing[row.Column][i], x.Flat.([]float32)[2*i+1], name)
			}
		}
	}
	t.Logf("%d columns, fills and scales, as texts and as numbers: at most %.1e apart", len(g.Prepared), worst)
}
