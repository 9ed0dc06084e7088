package tables_test

import (
	"encoding/json"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

func inputsOf(p *tables.Preparation, rows ...map[string]any) (*data.Set, error) {
	return p.Rows(rows...)
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
	rules := must.M1(tables.Fit(must.M1(data.New(data.Named("a", []string{"2024-01-01", "2024-02-01"}, 2), data.Named("b", []string{"1", "2"}, 2))),
		tables.Dates{Columns: []string{"a"}, Parts: []string{"year", "month cycle", "days"}}, tables.Crossed{Columns: []string{"a", "b"}, Buckets: 9},
		tables.Numbers{Columns: []string{"b"}, Fill: tables.FillForward, Log: true, Scale: tables.Normal, Clip: [2]float64{0, 2}}))
	f.Add(must.M1(json.Marshal(rules)))
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
