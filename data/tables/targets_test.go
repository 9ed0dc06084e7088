package tables_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

// Scaled labels are scikit-learn's, also after the preparation's JSON was read, and Restore makes the labels of them.
func TestLabels_scaledAsScikitLearn(t *testing.T) {
	var file struct {
		Y     []float64
		Cases []struct {
			Scale  string
			Log    bool
			Scaled []float64
		}
	}
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("testdata/targets.json")), &file))
	table := must.M1(data.New(data.Named("x", make([]float32, len(file.Y)), len(file.Y)), data.Named("price", file.Y, len(file.Y))))
	for _, c := range file.Cases {
		p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"x"}}, tables.Labels{Columns: []string{"price"}, Numbers: true, Log: c.Log,
			Scale: map[string]tables.Scale{"standard": tables.Standard, "minmax": tables.MinMax}[c.Scale]}))
		again := new(tables.Preparation)
		require.NoError(t, json.Unmarshal(must.M1(json.Marshal(p)), again))
		require.Equal(t, p.Targets("y"), again.Targets("y"))
		require.Nil(t, p.Targets("x"))
		scaled := must.M1(table.Map(again.Apply))
		require.InDeltaSlice(t, c.Scaled, must.M1(scaled.Field("y")).Flat, 1e-6)
		require.InDeltaSlice(t, file.Y, must.M1(must.M1(scaled.Map(again.Restore)).Field("y")).Flat, 0.02, "float32 of the logarithm has 7 digits")
		inputs, labels := p.Columns()
		require.Equal(t, [][]string{{"x"}, {"price"}}, [][]string{inputs, labels})
		_, err := scaled.Map(data.OnField("y", func(a data.Array) (data.Array, error) {
			return data.Array{Flat: make([]int32, a.Len()), Dims: a.Dims}, nil
		}), p.Restore)
		require.ErrorContains(t, err, `tables: preparation: restore: field "y" is int32 [12], expected float32`)
	}
}

func TestLabels_scaledRefuse(t *testing.T) {
	table := func(texts ...string) *data.Set { return column(t, "price", texts...) }
	for want, of := range map[string]struct {
		table *data.Set
		tables.Labels
	}{
		"Scale and Log are for labels that are numbers: set Numbers":                         {table("1", "2"), tables.Labels{Scale: tables.Standard}},
		"the Scale is 9: expected Standard, MinMax or Robust":                                {table("1", "2"), tables.Labels{Numbers: true, Scale: 9}},
		`column "price": row 2: the label is missing: leave such examples out`:               {table("1", ""), tables.Labels{Numbers: true, Log: true}},
		`column "price": row 2: -1 has no logarithm of 1 + label: expected numbers above -1`: {table("1", "-1"), tables.Labels{Numbers: true, Log: true}},
		`column "price": row 1: "much" is not a number`:                                      {table("much", "1"), tables.Labels{Numbers: true, Scale: tables.MinMax}},
	} {
		of.Columns = []string{"price"}
		_, err := tables.Fit(of.table, of.Labels)
		require.ErrorContains(t, err, want)
	}
	p := must.M1(tables.Fit(table("1", "2"), tables.Labels{Columns: []string{"price"}, Numbers: true, Log: true}))
	_, err := table("1", "-2").Map(p.Apply)
	require.ErrorContains(t, err, `column "price": row 2: -2 has no logarithm`)
}
