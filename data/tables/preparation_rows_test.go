package tables_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

func inputsOf(p *tables.Preparation, rows ...map[string]any) (*data.Set, error) {
	table, err := p.Table(rows...)
	if err != nil {
		return nil, err
	}
	return table.Map(p.Inputs)
}

// A number of JSON is the class that its digits are, also written as a fraction, and a long id keeps them all.
func TestPreparation_numbersOfJSON(t *testing.T) {
	p := must1(tables.Fit(column(t, "id", "1", "9007199254740993"), tables.Categories{Columns: []string{"id"}, Integers: true}))
	for text, class := range map[json.Number]int32{"1": 0, "1.0": 0, "1e0": 0, "9007199254740993": 1} {
		set, err := inputsOf(p, map[string]any{"id": text})
		require.NoError(t, err)
		require.Equal(t, []int32{class}, set.Fields()[0].Array.Flat)
	}
	_, err := inputsOf(p, map[string]any{"id": json.Number("1e999")})
	require.ErrorContains(t, err, `"1e999" is not a class`)
}

// A file that is not ours, or of a later version, is an error; none takes more memory than it has bytes, times a small
// number.
func FuzzPreparation(f *testing.F) {
	text, err := json.Marshal(fitBirds(f))
	require.NoError(f, err)
	f.Add(text)
	table, table2 := readTable(f, birds), readTable(f, "a\n1\n")
	for want, file := range map[string]string{
		"version 0, expected 1":                    `{}`,
		"version 2, expected 1":                    `{"version":2}`,
		`unknown field "more"`:                     `{"version":1,"columns":[],"more":1}`,
		"no columns":                               `{"version":1,"columns":[]}`,
		`its As is "text"`:                         `{"version":1,"columns":[{"column":"a","field":"x","as":"text"}]}`,
		"no scale of 0":                            `{"version":1,"columns":[{"column":"a","field":"x","as":"number"}]}`,
		"0 classes in a one-hot":                   `{"version":1,"columns":[{"column":"a","field":"x","as":"one-hot"}]}`,
		`the class "b" is listed twice`:            `{"version":1,"columns":[{"column":"a","field":"x","as":"one-hot","classes":["b","b"]}]}`,
		`the class to fill in, "c", is not one of`: `{"version":1,"columns":[{"column":"a","field":"x","as":"one-hot","classes":["b"],"fill_class":"c"}]}`,
		`unknown classes are "zero"`:               `{"version":1,"columns":[{"column":"a","field":"x","as":"one-hot","classes":["b"],"unknown":"zero"}]}`,
		`a setting that a class label does not`:    `{"version":1,"columns":[{"column":"a","field":"x","as":"class label","classes":["b"],"unknown":"own"}]}`,
		`its field is ""`:                          `{"version":1,"columns":[{"column":"a","as":"number","scale":1}]}`,
		`an indicator without a value`:             `{"version":1,"columns":[{"column":"a","field":"x","as":"number","scale":1,"indicator":true}]}`,
		`cannot unmarshal number 1e999`:            `{"version":1,"columns":[{"column":"a","field":"x","as":"number","scale":1e999}]}`,
		`appears twice`:                            `{"version":1,"columns":[{"column":"a","field":"x","as":"number","scale":1},{"column":"a","field":"y","as":"number","scale":1}]}`,
	} {
		f.Add([]byte(file))
		before := fitBirds(f)
		err := json.Unmarshal([]byte(file), before)
		require.ErrorContains(f, err, "tables: preparation: read JSON: ")
		require.ErrorContains(f, err, want)
		after, err := json.Marshal(before)
		require.NoError(f, err)
		require.Equal(f, text, after, "it is left as it was")
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		p := &tables.Preparation{}
		if p.UnmarshalJSON(file) != nil {
			return
		}
		for _, table := range []*data.Set{table, table2} {
			if set, err := table.Map(p.Apply); err == nil {
				for _, f := range set.Fields() {
					require.NoError(t, f.Array.Check())
				}
			}
		}
		text, err := json.Marshal(p)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &tables.Preparation{}))
	})
}
