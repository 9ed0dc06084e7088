package tables_test

import (
	"encoding/json"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/stretchr/testify/require"
)

func TestPreparation_labelsOfSeveralColumns(t *testing.T) {
	table := must.M1(data.New(data.Named("x", []float32{1, 2, 3}, 3), data.Named("red", []string{"1", " 0", "True"}, 3), data.Named("round", []bool{false, true, true}, 3),
		data.Named("mass", []float64{1, 2, 3}, 3), data.Named("age", []int64{4, 5, 6}, 3)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"x"}}, tables.Labels{Columns: []string{"red", "round"}},
		tables.Labels{Columns: []string{"mass", "age"}, Numbers: true, Field: "targets"}))
	text := must.M1(json.Marshal(p))
	again := new(tables.Preparation)
	require.NoError(t, json.Unmarshal(text, again))
	for _, p := range []*tables.Preparation{p, again} {
		made := must.M1(table.Map(p.Apply))
		require.Equal(t, data.Array{Flat: []float32{1, 0, 0, 1, 1, 1}, Dims: []int{3, 2}}, must.M1(made.Field("y")))
		require.Equal(t, data.Array{Flat: []float32{1, 4, 2, 5, 3, 6}, Dims: []int{3, 2}}, must.M1(made.Field("targets")))
		require.Equal(t, []string{"red", "round"}, must.M1(p.Classes("y")))
		inputs, labels := p.Columns()
		require.Equal(t, []string{"x"}, inputs)
		require.Equal(t, []string{"red", "round", "mass", "age"}, labels)
		_, err := p.Classes("targets")
		require.ErrorContains(t, err, "expected the class numbers of one column")
		one := must.M1(p.Table(map[string]any{"x": 2})) // without labels
		require.Len(t, one.Fields(), 1)
	}
	table = must.M1(data.New(data.Named("x", []float32{1}, 1), data.Named("red", []string{""}, 1), data.Named("round", []bool{false}, 1)))
	_, err := table.Map(must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"x"}}, tables.Labels{Columns: []string{"red", "round"}})).Apply)
	require.ErrorContains(t, err, `column "red": row 1: the label is missing`)
}
