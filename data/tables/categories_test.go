package tables_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/stretchr/testify/require"
)

func TestPreparation_classesAreThoseOfScikitLearn(t *testing.T) {
	g := readGolden(t)
	for _, want := range []goldenClasses{g.Island, g.Code} {
		table := column(t, "a", want.Cells...)
		train, err := table.Slice(0, g.Train)
		require.NoError(t, err)
		test, err := table.Slice(g.Train, table.Len())
		require.NoError(t, err)
		p, err := tables.Fit(train, tables.Categories{Unknown: tables.UnknownZeros})
		require.NoError(t, err)
		set, err := test.Map(p.Apply)
		require.NoError(t, err)
		var flat []float32
		for _, row := range want.Test {
			flat = append(flat, row...)
		}
		require.Equal(t, data.Array{Flat: flat, Dims: []int{test.Len(), len(want.Classes)}}, field(t, set, "x"))

		p, err = tables.Fit(train, tables.Categories{Integers: true, Unknown: tables.UnknownOwn})
		require.NoError(t, err)
		set, err = test.Map(p.Inputs)
		require.NoError(t, err)
		numbers := field(t, set, "a").Flat.([]int32)
		for i, n := range want.Numbers {
			if n == 99 {
				n = int32(len(want.Classes))
			}
			require.Equal(t, n, numbers[i])
		}
		classes, err := p.Classes("a")
		require.NoError(t, err)
		require.Equal(t, want.Classes, classes)
	}
	p, err := tables.Fit(column(t, "y", g.Code.Cells[:g.Train]...), tables.Labels{Columns: []string{"y"}}, tables.Categories{Columns: []string{"y"}})
	require.ErrorContains(t, err, `column "y" is named twice`)
	require.Nil(t, p)
	table, err := column(t, "y", g.Code.Cells[:g.Train]...).Map(data.Rename("y", "code"))
	require.NoError(t, err)
	p, err = tables.Fit(table, tables.Labels{Columns: []string{"code"}})
	require.NoError(t, err)
	set, err := table.Map(p.Apply)
	require.NoError(t, err)
	require.Equal(t, g.Labels, field(t, set, "y").Flat)
}

// Categories without Columns take neither labels nor ids and dates.
func TestS36_categoriesOfAllColumns(t *testing.T) {
	text := "id,day,kind,label\n"
	for i := range 20 {
		text += fmt.Sprintf("u%d,2026-01-%02d,k%d,l%d\n", i, i+1, i%3, i%2)
	}
	table, err := tables.Read(strings.NewReader(text), tables.Format{Texts: true})
	require.NoError(t, err)
	_, err = tables.Fit(table, tables.Categories{})
	require.ErrorContains(t, err, "Categories without Columns would also take the column of the labels")
	_, err = tables.Fit(table, tables.Labels{Columns: []string{"label"}}, tables.Categories{})
	require.ErrorContains(t, err, `column "id": all its 20 values differ, as those of ids and dates`)
	_, err = tables.Fit(table, tables.Labels{Columns: []string{"label"}}, tables.Categories{Columns: []string{"id", "kind"}})
	require.NoError(t, err)
}

// Rare classes are those of scikit-learn's OneHotEncoder(min_frequency, handle_unknown="infrequent_if_exist").
func TestCategories_rare(t *testing.T) {
	g := readRules(t)
	train, test := column(t, "a", g.Kind...), column(t, "a", g.Seen...)
	for _, row := range g.Rare {
		rule := tables.Categories{Rare: int(row.Least), RareShare: row.Least - float64(int(row.Least))}
		if !row.Infrequent {
			rule.Unknown = tables.UnknownZeros
		}
		p := must.M1(tables.Fit(train, rule))
		near(t, row.Test, field(t, must.M1(test.Map(again(t, p).Apply)), "x"), fmt.Sprint(row.Least))
	}
	// A missing value that is filled in counts.
	p := must.M1(tables.Fit(column(t, "a", "a", "a", "b", "", ""), tables.Categories{Rare: 2, Fill: tables.FillValue, Value: "?", Integers: true}))
	require.Equal(t, []string{"?", "a"}, must.M1(p.Classes("a")))
	p = must.M1(tables.Fit(column(t, "a", "a", "a", "b", ""), tables.Categories{Rare: 2, Fill: tables.FillValue, Value: "?", Integers: true}))
	require.Equal(t, []int32{0, 1, 1}, field(t, must.M1(column(t, "a", "a", "", "c").Map(again(t, p).Apply)), "a").Flat)
	_, err := tables.Fit(train, tables.Categories{Rare: 100})
	require.ErrorContains(t, err, `column "a": all its classes are rare`)
	_, err = tables.Fit(train, tables.Categories{RareShare: 2})
	require.ErrorContains(t, err, "a share of less than 1")
	_, err = tables.Fit(train, tables.Categories{Rare: 2, Classes: []string{"a"}})
	require.ErrorContains(t, err, "both Classes and Rare are set")
}

// pandas writes 3 as 3.0 next to missing values: a text is of a class with the same whole number, as a JSON number is.
// Other texts, such as versions and codes with zeros in front, are of their own class alone.
func TestCategories_wholeNumbersOfTexts(t *testing.T) {
	of := func(classes ...string) *tables.Preparation {
		return must.M1(tables.Fit(column(t, "code", classes...), tables.Categories{Columns: []string{"code"}, Unknown: tables.UnknownZeros}))
	}
	p, small := of("3.0", "4.0", "1.1", "007", "True"), of("3", "4")
	for text, want := range map[string]float32{"3": 1, "4.0": 1, "-3": 0, "1.10": 0, "7": 0, "3.00": 0, "03": 0, "true": 1} {
		rows := must.M1(p.Table(map[string]any{"code": text}))
		for _, set := range []*data.Set{column(t, "code", text), rows} {
			sum := float32(0)
			for _, v := range must.M1(must.M1(set.Map(p.Inputs)).Field("x")).Flat.([]float32) {
				sum += v
			}
			require.Equal(t, want, sum, text)
		}
	}
	require.Equal(t, []float32{0, 1}, must.M1(must.M1(column(t, "code", "4.0").Map(small.Inputs)).Field("x")).Flat)
}
