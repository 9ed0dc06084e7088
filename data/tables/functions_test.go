package tables_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/stretchr/testify/require"
)

func ratio(row []string) ([]float32, error) {
	a, err := strconv.ParseFloat(row[0], 32)
	if err != nil {
		return nil, err
	}
	b, err := strconv.ParseFloat(row[1], 32)
	if row[1] == "" {
		return []float32{0, 1}, nil
	}
	return []float32{float32(a / b), 0}, err
}

func TestFunction(t *testing.T) {
	table := must.M1(data.New(data.Named("a", []float64{1, 3}, 2), data.Named("b", []string{"2", "NA"}, 2), data.Named("c", []int32{7, 8}, 2)))
	p := must.M1(tables.Fit(table, tables.Numbers{}, tables.Function{Name: "ratio", Columns: []string{"a", "b"}, Of: ratio}, tables.Missing{"NA"},
		tables.Numbers{Columns: []string{"a"}, Field: "a"}))
	text := must.M1(json.Marshal(p))
	functions := tables.Functions{"ratio": ratio}
	for _, p := range []*tables.Preparation{p, must.M1(functions.Unmarshal(text))} {
		require.Equal(t, []float32{7, 0.5, 0, 8, 0, 1}, field(t, must.M1(table.Map(p.Apply)), "x").Flat)
		require.Equal(t, []string{"c", "ratio 1", "ratio 2"}, must.M1(p.Names("x")))
		require.Equal(t, []float32{7, 0.5, 0}, must.M1(inputsOf(p, map[string]any{"a": 1, "b": 2, "c": 7})).Fields()[0].Array.Flat)
		_, err := inputsOf(p, map[string]any{"a": "one", "b": 2, "c": 7})
		require.ErrorContains(t, err, `column "a, b": row 1: function "ratio" of ["one" "2"]: strconv.ParseFloat`)
		_, err = inputsOf(p, map[string]any{"a": "1", "b": 0, "c": 7})
		require.ErrorContains(t, err, `it gives [+Inf 0], expected finite numbers`)
	}
	err := json.Unmarshal(text, new(tables.Preparation))
	require.ErrorContains(t, err, `tables: preparation: read JSON: column "a, b": the function "ratio" is code of the program that made the preparation: read it with that function, by tables.Functions{"ratio": …}.Unmarshal`)
	_, err = tables.Functions{"ratio": ratio, "other": ratio}.Unmarshal(text)
	require.ErrorContains(t, err, `tables: preparation: functions: the preparation has no function "other"; there are ["ratio"]`)

	for want, rule := range map[string]tables.Function{
		`the Name is "" and the Columns are ["a"]`: {Columns: []string{"a"}, Of: ratio},
		`it gives 2 numbers, expected 1, as for the training data`: {Name: "f", Columns: []string{"a"}, Of: func(row []string) ([]float32, error) {
			return make([]float32, 1+len(row[0])/2), nil
		}},
		`columns ["a"]: row 1: function "f" of ["1"]: it gives 0 numbers, expected 1`: {Name: "f", Columns: []string{"a"}, Of: func([]string) ([]float32, error) { return nil, nil }},
	} {
		rows := must.M1(data.New(data.Named("a", []float64{1, 10}, 2)))
		_, err := tables.Fit(rows, rule)
		require.ErrorContains(t, err, want)
	}
	_, err = tables.Fit(table, tables.Function{Name: "f", Columns: []string{"a", "c"}, Of: ratio}, tables.Labels{Columns: []string{"c"}})
	require.ErrorContains(t, err, `column "c" has labels, and "a, c", a function, takes it`)
}
