package tables_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

type golden struct {
	Train    int
	Numbers  map[string][]string
	Prepared []struct {
		Column, Fill, Scale string
		Test                []float64
	}
	Missing      map[string][]float32
	Island, Code goldenClasses
	Labels       []int32
}

type goldenClasses struct {
	Cells, Classes []string
	Test           [][]float32
	Numbers        []int32
}

func readGolden(t *testing.T) (g golden) {
	text, err := os.ReadFile("testdata/preparation.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &g))
	return g
}

// column is a set of one column of texts.
func column(t testing.TB, name string, cells ...string) *data.Set {
	set, err := data.New(data.Named(name, cells, len(cells)))
	require.NoError(t, err)
	return set
}

func field(t testing.TB, set *data.Set, name string) data.Array {
	a, err := set.Field(name)
	require.NoError(t, err)
	return a
}

const birds = "id,mass,island,sex,age,species,weight\n" +
	"1,3,Dream,m,1,b,0.5\n" +
	"2,NA,Biscoe,,2,a,1\n" +
	"3,5,Dream,f,10,b,1\n" +
	"4,7,Biscoe,m,1,a,2\n"

func readTable(t testing.TB, text string) *data.Set {
	set, err := tables.Read(strings.NewReader(text), tables.Format{Texts: true, Missing: []string{"NA"}})
	require.NoError(t, err)
	return set
}

func fitBirds(t testing.TB) *tables.Preparation {
	p, err := tables.Fit(readTable(t, birds),
		tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean, Scale: tables.MinMax, Indicator: true},
		tables.Categories{Columns: []string{"island"}, Unknown: tables.UnknownOwn},
		tables.Categories{Columns: []string{"sex"}, Fill: tables.FillValue, Value: "?", Classes: []string{"f", "m"}},
		tables.Categories{Columns: []string{"age"}, Integers: true},
		tables.Labels{Columns: []string{"species"}}, tables.Labels{Columns: []string{"weight"}, Field: "weight", Numbers: true})
	require.NoError(t, err)
	return p
}

func TestPreparation_refuses(t *testing.T) {
	p := fitBirds(t)
	table := readTable(t, birds)
	for want, changes := range map[string][]func(data.Batch) (data.Batch, error){
		`tables: preparation: apply: the table has no column "sex"; there are ["id" "mass" "island" "age" "species" "weight"] (it was fitted as a one-hot)`:                                                                         {data.Drop("sex")},
		`tables: preparation: apply: the table has no column "species"`:                                                                                                                                                             {data.Drop("species")},
		`column "mass": row 1: "Dream" is not a number: invalid syntax: if it marks a missing value, name it in tables.Missing, which the preparation keeps, or in Format.Missing; if it is a class, use Categories for the column`: {data.Drop("mass"), data.Rename("island", "mass")},
		`column "sex": row 1: "1" is not a class of the training data: expected one of 3: ["f" "m" "?"]; to accept other classes, set Categories.Unknown, and fit the preparation again`:                                            {data.Drop("sex"), data.Rename("id", "sex")},
		`column "species": row 1: "1" is not a class of the training data: expected one of 2: ["a" "b"]`:                                                                                                                            {data.Drop("species"), data.Rename("id", "species")},
	} {
		_, err := table.Map(append(changes, p.Apply)...)
		require.ErrorContains(t, err, want)
	}
	for want, row := range map[string]map[string]any{
		`row 1: there is no column "mass", fitted as a number: give nil (null in JSON) if the value is missing`: {"age": 1, "sex": "f", "island": "Dream"},
		`row 1: the preparation has no column "mas"; there are ["age" "island"`:                                 {"age": 1, "sex": "f", "island": "Dream", "mass": 1, "mas": 1},
		`column "mass": row 1: "true" is not a number`:                                                          {"age": 1, "sex": "f", "island": "Dream", "mass": true},
		`column "mass": row 1: the value is a list, expected a number`:                                          {"age": 1, "sex": "f", "island": "Dream", "mass": []int{1}},
		`column "age": row 1: "1.5" is not a class`:                                                             {"age": 1.5, "sex": "f", "island": "Dream", "mass": 1},
		`column "age": row 1: the value is missing: set Categories.Fill`:                                        {"age": nil, "sex": "f", "island": "Dream", "mass": 1},
		`column "mass": row 1: 1e+300 is too large for a float32`:                                               {"age": 1, "sex": "f", "island": "Dream", "mass": 1e300},
		`column "mass": row 1: "-Inf" is not a number`:                                                          {"age": 1, "sex": "f", "island": "Dream", "mass": math.Inf(-1)},
		`column "mass": row 1: "+Inf" is not a number`:                                                          {"age": 1, "sex": "f", "island": "Dream", "mass": math.Inf(1)},
	} {
		_, err := inputsOf(p, row)
		require.ErrorContains(t, err, "tables: preparation: ")
		require.ErrorContains(t, err, want)
	}
	_, err := p.Table()
	require.EqualError(t, err, "tables: preparation: table: there are no rows")
	_, err = p.Classes("x")
	require.EqualError(t, err, `tables: preparation: classes: field "x" holds number, expected the class numbers of one column`)
	_, err = p.Names("z")
	require.EqualError(t, err, `tables: preparation: names: it makes no field "z"; there are ["x" "age" "y" "weight"]`)
	for _, p := range []*tables.Preparation{nil, {}} {
		_, err = table.Map(p.Apply)
		require.ErrorContains(t, err, "tables: preparation: apply: it is the zero value")
		_, err = p.Table(map[string]any{})
		require.ErrorContains(t, err, "it is the zero value")
	}

	for _, row := range []struct {
		want    string
		columns []tables.Columns
	}{
		{"no columns: expected Numbers, Categories or Labels", nil},
		{`column "mass": 1 of 4 values are missing, the first one in row 2: set Numbers.Fill`, []tables.Columns{tables.Numbers{Columns: []string{"mass"}}}},
		{`column "sex": row 2: the value is missing: set Categories.Fill`, []tables.Columns{tables.Categories{Columns: []string{"sex"}}}},
		{`column "sex": row 1: "m" is not one of Classes, ["f"]`, []tables.Columns{tables.Categories{Columns: []string{"sex"}, Classes: []string{"f"}}}},
		{`tables.Numbers: the table has no column "wings"; there are ["id" "mass"`, []tables.Columns{tables.Numbers{Columns: []string{"wings"}}}},
		{`column "mass" is named twice`, []tables.Columns{tables.Numbers{Columns: []string{"mass", "mass"}}}},
		{`tables.Numbers and tables.Categories both name no columns`, []tables.Columns{tables.Numbers{}, tables.Categories{}}},
		{`tables.Labels: the Columns are []`, []tables.Columns{tables.Labels{}}},
		{`field "y" has columns "island", class label, and "age", number: expected labels in a field of their own`,
			[]tables.Columns{tables.Labels{Columns: []string{"island"}}, tables.Numbers{Columns: []string{"age"}, Field: "y"}}},
		{`column "island": row 1: "Dream" is not one of 0, 1, false and true`, []tables.Columns{tables.Labels{Columns: []string{"island", "sex"}}}},
		{`both Classes and the Columns ["island" "sex"], each of which is a class`,
			[]tables.Columns{tables.Labels{Columns: []string{"island", "sex"}, Classes: []string{"a"}}}},
		{`tables.Numbers: the Value is 1, which is only used with Fill: tables.FillValue`, []tables.Columns{tables.Numbers{Value: 1}}},
		{`tables.Numbers: the Indicator is set, but no Fill`, []tables.Columns{tables.Numbers{Indicator: true}}},
		{`the Value is "" and the Fill 4`, []tables.Columns{tables.Categories{Fill: tables.FillValue}}},
		{`the Fill is 1 and the Unknown 0: expected 0, FillMostFrequent or FillValue`, []tables.Columns{tables.Categories{Fill: tables.FillMean}}},
		{`Integers has no columns to be 0: use UnknownOwn`, []tables.Columns{tables.Categories{Integers: true, Unknown: tables.UnknownZeros}}},
		{`tables.Labels of ["age"]: the field "y" already has labels: give these another Field`, []tables.Columns{tables.Labels{Columns: []string{"island"}}, tables.Labels{Columns: []string{"age"}}}},
		{`field "x" has columns "id", number, and "age", integer: expected fields of their own for integers`,
			[]tables.Columns{tables.Numbers{Columns: []string{"id"}}, tables.Categories{Columns: []string{"age"}, Integers: true, Field: "x"}}},
		{`column "island": row 1: "Dream" is not a number`, []tables.Columns{tables.Labels{Columns: []string{"island"}, Numbers: true}}},
		{`columns 1 of 1 are nil`, []tables.Columns{nil}},
	} {
		_, err := tables.Fit(table, row.columns...)
		require.ErrorContains(t, err, "tables: fit preparation: ")
		require.ErrorContains(t, err, row.want)
	}
	many := make([]string, 5000)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	_, err = tables.Fit(column(t, "a", many...), tables.Categories{Columns: []string{"a"}})
	require.ErrorContains(t, err, `column "a": 5000 classes, expected at most 4096 as columns of 0 and 1: set Categories.Integers`)
	require.ErrorIs(t, err, data.ErrLimit)
	_, err = tables.Fit(column(t, "a", "", ""), tables.Numbers{Fill: tables.FillMedian})
	require.ErrorContains(t, err, `column "a": all values are missing`)
	wide, err := data.New(data.Named("a", make([]float32, 6), 3, 2))
	require.NoError(t, err)
	p, err = tables.Fit(column(t, "a", "1", "2"), tables.Numbers{})
	require.NoError(t, err)
	_, err = wide.Map(p.Inputs)
	require.ErrorContains(t, err, `column "a" is float32 [3 2], expected one value for each example`)
	_, err = tables.Fit(nil, tables.Numbers{})
	require.ErrorContains(t, err, "the set has no examples")
}

// Texts that stand for a missing value are kept with a preparation: it does without them what another does of a table
// that was read with them, here and after its JSON was read again, and of rows from JSON.
func TestMissing(t *testing.T) {
	table := func(none string) *data.Set {
		return must1(data.New(data.Named("mass", []string{"1", none, "3"}, 3), data.Named("sex", []string{none, "f", "m"}, 3), data.Named("kind", []string{"a", "b", "a"}, 3)))
	}
	rules := []tables.Columns{tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean, Indicator: true},
		tables.Categories{Columns: []string{"sex"}, Fill: tables.FillMostFrequent}, tables.Labels{Columns: []string{"kind"}}}
	want := must1(must1(tables.Fit(table(""), rules...)).Apply(must1(data.Peek(table("").Batches(3).All()))))
	p := must1(tables.Fit(table("n/a"), append(rules, tables.Missing{"NA", "n/a"})...))
	require.Equal(t, want.Fields, must1(p.Apply(must1(data.Peek(table("n/a").Batches(3).All())))).Fields)
	again := new(tables.Preparation)
	require.NoError(t, json.Unmarshal(must1(json.Marshal(p)), again))
	require.Equal(t, want.Fields, must1(again.Apply(must1(data.Peek(table(" NA ").Batches(3).All())))).Fields)
	require.Equal(t, must1(inputsOf(p, map[string]any{"mass": nil, "sex": nil})).Fields(), must1(inputsOf(again, map[string]any{"mass": "NA", "sex": "n/a"})).Fields())
	_, err := tables.Fit(table(""), append(rules, tables.Missing{})...)
	require.ErrorContains(t, err, "tables.Missing appears twice, or names no text")
	_, err = tables.Fit(table(""), tables.Numbers{Columns: []string{"mas"}})
	require.ErrorContains(t, err, `tables.Numbers: the table has no column "mas"; there are ["mass" "sex" "kind"]; did you mean "mass"?`)
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A column that was prepared before its windows has an axis too many.
func TestFit_columnsOfWindowsHaveTwoAxes(t *testing.T) {
	table, err := data.New(data.Named("v", make([]float32, 6), 2, 3, 1))
	require.NoError(t, err)
	_, err = tables.Fit(table, tables.Numbers{})
	require.ErrorContains(t, err, `column "v": it is float32 [2 3 1], expected [n], or [n, rows] of series.Windows of a column [n]; to fill values before windows use Forward of series.Past`)
}

func TestFit_namesTheLabelsOfWindows(t *testing.T) {
	windows := must.M1(data.New(data.Named("v", []float32{1, 2}, 1, 2), data.Named("next v", []float32{3}, 1, 1)))
	_, err := tables.Fit(windows, tables.Numbers{Columns: []string{"v"}}, tables.Labels{Columns: []string{"v"}, Numbers: true})
	require.ErrorContains(t, err, `column "v" is named twice; did you mean "next v", the rows after the windows, for the labels?`)
}
