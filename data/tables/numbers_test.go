package tables_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/janpfeifer/must"
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

type rules struct {
	Rest     int
	Numbers  map[string][]string
	Prepared []struct {
		Column, Step string
		Test         [][]float64
	}
	Dates, Parts []string
	Of           [][]float64 `json:"of_dates"`
	Scaled       [][]float64
	Kind, Seen   []string
	Rare         []struct {
		Least      float64
		Infrequent bool
		Test       [][]float64
	}
	Hashes map[string][2]int32
}

func readRules(t *testing.T) (g rules) {
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("testdata/rules.json")), &g))
	return g
}

// again is p after its JSON was read.
func again(t testing.TB, p *tables.Preparation) *tables.Preparation {
	read := new(tables.Preparation)
	require.NoError(t, json.Unmarshal(must.M1(json.Marshal(p)), read))
	return read
}

// near compares a field with rows of another library to 1e-6.
func near(t *testing.T, want [][]float64, a data.Array, name string) {
	require.Equal(t, []int{len(want), len(want[0])}, a.Dims, name)
	for i, row := range want {
		for k, v := range row {
			require.InDelta(t, v, a.Flat.([]float32)[i*len(row)+k], 1e-6*max(1, math.Abs(v)), "%s, row %d, column %d", name, i, k)
		}
	}
}

func TestNumbers_stepsAreThoseOfScikitLearn(t *testing.T) {
	g := readRules(t)
	require.Len(t, g.Prepared, 5*7-1)
	steps := map[string]tables.Numbers{
		"robust": {Scale: tables.Robust}, "uniform": {Scale: tables.Uniform}, "normal": {Scale: tables.Normal}, "bins": {Bins: 7},
		"log": {Clip: [2]float64{-0.5, 100}, Log: true, Scale: tables.Standard}, "clip": {ClipQuantiles: [2]float64{0.05, 0.9}},
		"forward": {Fill: tables.FillForward, Leading: tables.FillMedian},
	}
	for _, row := range g.Prepared {
		rule := steps[row.Step]
		if rule.Fill == 0 {
			rule.Fill = tables.FillMedian
		}
		table := column(t, "a", g.Numbers[row.Column]...)
		train := must.M1(table.Slice(0, table.Len()-g.Rest))
		test := must.M1(table.Slice(table.Len()-g.Rest, table.Len()))
		p := must.M1(tables.Fit(train, rule))
		for _, p := range []*tables.Preparation{p, again(t, p)} {
			set, err := test.Map(p.Apply)
			require.NoError(t, err)
			near(t, row.Test, field(t, set, "x"), row.Column+" "+row.Step)
		}
	}
}

func TestNumbers_forward(t *testing.T) {
	table := column(t, "a", "", "1", "", "3", "")
	_, err := tables.Fit(table, tables.Numbers{Fill: tables.FillForward})
	require.ErrorContains(t, err, `column "a": row 1: the value is missing, and so are all before`)
	p := must.M1(tables.Fit(must.M1(table.Slice(1, 5)), tables.Numbers{Fill: tables.FillForward, Indicator: true}))
	set := must.M1(must.M1(table.Slice(1, 5)).Map(again(t, p).Apply))
	require.Equal(t, []float32{1, 0, 1, 1, 3, 0, 3, 1}, field(t, set, "x").Flat)
	_, err = inputsOf(p, map[string]any{"a": nil})
	require.ErrorContains(t, err, "row 1: the value is missing, and so are all before, as of a single row: set Numbers.Leading")
	p = must.M1(tables.Fit(table, tables.Numbers{Fill: tables.FillForward, Leading: tables.FillValue}))
	require.Equal(t, []float32{0, 4}, must.M1(inputsOf(p, map[string]any{"a": nil}, map[string]any{"a": 4})).Fields()[0].Array.Flat)
}

func TestNumbers_edges(t *testing.T) {
	table := column(t, "a", "0", "1", "1.5", "2", "9", "")
	p := must.M1(tables.Fit(table, tables.Numbers{Edges: []float64{1, 2}, Fill: tables.FillValue, Indicator: true}))
	set := must.M1(table.Map(again(t, p).Apply))
	near(t, [][]float64{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 0}, {1, 0, 0, 1}}, field(t, set, "x"), "edges")
	require.Equal(t, []string{"a=-Inf to 1", "a=1 to 2", "a=2 to +Inf", "a missing"}, must.M1(p.Names("x")))
	p = must.M1(tables.Fit(table, tables.Numbers{Fill: tables.FillValue, Clip: [2]float64{math.Inf(-1), 2}}))
	require.Equal(t, []float32{0, 1, 1.5, 2, 2, 0}, field(t, must.M1(table.Map(again(t, p).Apply)), "x").Flat)
}

func TestNumbers_refuses(t *testing.T) {
	table := column(t, "a", "1", "-2", "1")
	for want, rule := range map[string]tables.Numbers{
		"row 2: log(1 + -2) does not exist: expected more than -1: set Numbers.Clip": {Log: true},
		"the Clip is [2 1], expected a number and a larger one":                      {Clip: [2]float64{2, 1}},
		"the ClipQuantiles are [0.5 1.5]":                                            {ClipQuantiles: [2]float64{0.5, 1.5}},
		"both Clip and ClipQuantiles":                                                {Clip: [2]float64{1, 2}, ClipQuantiles: [2]float64{0, 1}},
		"the Bins are 1, expected 2 to 4096":                                         {Bins: 1},
		"two of Scale, Bins and Edges":                                               {Bins: 2, Scale: tables.Robust},
		"the Edges are [1 1], expected at most 4096 finite, ascending":               {Edges: []float64{1, 1, 2}},
		"the Leading is 1 and the Fill 0":                                            {Leading: tables.FillMean},
		"the Value is 3, which is only used with Fill: tables.FillValue":             {Value: 3, Fill: tables.FillForward},
	} {
		_, err := tables.Fit(table, rule)
		require.ErrorContains(t, err, want)
	}
	_, err := tables.Fit(column(t, "a", "1", "1"), tables.Numbers{Bins: 3})
	require.ErrorContains(t, err, `column "a": its values are all in one bin`)
	_, err = tables.Fit(column(t, "a", "1"), tables.Numbers{Scale: tables.Normal})
	require.ErrorContains(t, err, "1 values, expected at least 2 for quantiles")
	for want, settings := range map[string]string{
		"expected finite, ascending numbers": `"least":2,"most":1`, "1 quantiles: expected 2 to 1000": `"quantiles":[1]`,
		"2 quantiles: expected 2 to 1000 finite, ascending": `"quantiles":[2,1]`, "normal and edges: expected": `"normal":true`, "the Edges are [2 1]": `"edges":[2,1]`,
	} {
		err := json.Unmarshal([]byte(`{"version":1,"columns":[{"column":"a","field":"x","as":"number","scale":1,`+settings+`}]}`), new(tables.Preparation))
		require.ErrorContains(t, err, want)
	}
}
