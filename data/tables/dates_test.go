package tables_test

import (
	"testing"

	"github.com/janpfeifer/must"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/stretchr/testify/require"
)

func TestDates_partsAreThoseOfPandas(t *testing.T) {
	g := readRules(t)
	table := column(t, "at", g.Dates...)
	p := must.M1(tables.Fit(table, tables.Dates{Columns: []string{"at"}, Parts: g.Parts, Since: "2000-01-01"},
		tables.Missing{"NA"}))
	for _, p := range []*tables.Preparation{p, again(t, p)} {
		near(t, g.Of, field(t, must.M1(table.Map(p.Apply)), "x"), "dates")
	}
	names := must.M1(p.Names("x"))
	require.Len(t, names, 26)
	require.Equal(t, []string{"at year", "at quarter"}, names[:2])
	require.Equal(t, []string{"at second sin", "at second cos"}, names[24:])
	p = must.M1(tables.Fit(table, tables.Dates{Columns: []string{"at"}, Parts: g.Parts[:10], Since: "2000-01-01", Scale: tables.Standard}))
	near(t, g.Scaled, field(t, must.M1(table.Map(again(t, p).Apply)), "x"), "scaled")
}

func TestDates_layoutsAndMissing(t *testing.T) {
	table := column(t, "at", "31.12.2024", "", "1.2.2024", "1.2.2024")
	rule := tables.Dates{Columns: []string{"at"}, Parts: []string{"month"}, Layout: "2.1.2006"}
	_, err := tables.Fit(table, rule)
	require.ErrorContains(t, err, `column "at": row 2: the date is missing: set Dates.Fill`)
	rule.Fill = tables.FillMostFrequent
	p := again(t, must.M1(tables.Fit(table, rule)))
	require.Equal(t, []float32{12, 2, 2, 2}, field(t, must.M1(table.Map(p.Apply)), "x").Flat)
	rule.Fill, rule.Value = tables.FillValue, "1.7.2000"
	p = again(t, must.M1(tables.Fit(table, rule)))
	require.Equal(t, []float32{7}, must.M1(inputsOf(p, map[string]any{"at": nil})).Fields()[0].Array.Flat)
	_, err = inputsOf(p, map[string]any{"at": "1.7.2000"}, map[string]any{"at": "2024-07-01"})
	require.ErrorContains(t, err, `column "at": row 2: "2024-07-01" is not a date: expected the Layout "2.1.2006"`)

	zones := column(t, "at", "2024-01-01T01:00:00+02:00", "2024-01-01 01:00Z")
	p = must.M1(tables.Fit(zones, tables.Dates{Columns: []string{"at"}, Parts: []string{"hour", "days"}, Since: "2024-01-01"}))
	near(t, [][]float64{{1, -1. / 24}, {1, 1. / 24}}, field(t, must.M1(zones.Map(p.Apply)), "x"), "the text's own clock")
	_, err = inputsOf(p, map[string]any{"at": "2024-02-30"})
	require.ErrorContains(t, err, `row 1: "2024-02-30" is not a date: expected "2006-01-02", maybe with a time`)
}

// Days since 1970 would lose minutes in a float32: an error, unless Since or Scale keep them.
func TestDates_daysKeepTheTime(t *testing.T) {
	table := column(t, "at", "2024-01-01T12:00", "2024-01-01T10:00", "2024-03-01T10:01")
	days := tables.Dates{Columns: []string{"at"}, Parts: []string{"days"}}
	_, err := tables.Fit(table, days)
	require.ErrorContains(t, err, `column "at": row 2: a float32 of 19723.416666666668 days loses 56 seconds of the time: set Dates.Since`)
	_, err = tables.Fit(column(t, "at", "2024-01-01", "2024-01-02"), days)
	require.NoError(t, err, "dates without times")
	days.Since = "2024-01-01"
	near(t, [][]float64{{0.5}, {10. / 24}, {60 + 601./1440}}, field(t, must.M1(table.Map(must.M1(tables.Fit(table, days)).Apply)), "x"), "")
	for _, by := range []tables.Scale{tables.Standard, tables.MinMax, tables.Robust} {
		days.Since, days.Scale = "", by
		_, err := tables.Fit(table, days)
		require.NoError(t, err)
	}
}

func TestDates_refuses(t *testing.T) {
	table := column(t, "at", "2024-01-01")
	for want, rule := range map[string]tables.Dates{
		`the Columns are [] and the Parts ["month"]`:         {Parts: []string{"month"}},
		`the part "moth": expected one of ["year" "quarter"`: {Columns: []string{"at"}, Parts: []string{"moth"}},
		`the part "day" is listed twice`:                     {Columns: []string{"at"}, Parts: []string{"day", "day"}},
		`the Fill is 1 and the Value ""`:                     {Columns: []string{"at"}, Parts: []string{"day"}, Fill: tables.FillMean},
		`the value to fill in: "soon" is not a date`:         {Columns: []string{"at"}, Parts: []string{"day"}, Fill: tables.FillValue, Value: "soon"},
		`the Since: "soon" is not a date`:                    {Columns: []string{"at"}, Parts: []string{"days"}, Since: "soon"},
		`the Scale is 4, expected Standard, MinMax, Robust`:  {Columns: []string{"at"}, Parts: []string{"day"}, Scale: tables.Uniform},
	} {
		_, err := tables.Fit(table, rule)
		require.ErrorContains(t, err, want)
	}
}

// A server compiles with a row that the preparation takes, also of dates in a Layout of their own without a Fill.
func TestDates_exampleOfALayout(t *testing.T) {
	p := must.M1(tables.Fit(column(t, "at", "31.12.2024"), tables.Dates{Columns: []string{"at"}, Layout: "02.01.2006", Parts: []string{"month"}}))
	require.Equal(t, []string{"01.01.1970"}, must.M1(must.M1(p.Example()).Field("at")).Flat)
}
