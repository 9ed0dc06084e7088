package tables_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/janpfeifer/must"
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

// Files of version 1, as the first version of each kind wrote them, stay readable.
func TestPreparation_readsOldFiles(t *testing.T) {
	flags := must.M1(data.New(data.Named("x", []float32{1, 2, 3}, 3), data.Named("red", []string{"1", " 0", "True"}, 3), data.Named("round", []bool{false, true, true}, 3)))
	for file, p := range map[string]*tables.Preparation{
		`{"version":1,"columns":[{"column":"mass","field":"x","as":"number","fill":5,"indicator":true,"shift":3,"scale":4},` +
			`{"column":"island","field":"x","as":"one-hot","classes":["Biscoe","Dream"],"unknown":"own"},` +
			`{"column":"sex","field":"x","as":"one-hot","classes":["f","m","?"],"fill_class":"?"},` +
			`{"column":"age","field":"age","as":"integer","classes":["1","2","10"]},{"column":"species","field":"y","as":"class label","classes":["a","b"]},` +
			`{"column":"weight","field":"weight","as":"number label","scale":1}]}`: fitBirds(t),
		`{"version":1,"columns":[{"column":"x","field":"x","as":"number","shift":2,"scale":0.816496580927726},{"column":"red","field":"y","as":"0 or 1 label","scale":1},` +
			`{"column":"round","field":"y","as":"0 or 1 label","scale":1}],"missing":["NA"]}`: must.M1(tables.Fit(flags,
			tables.Numbers{Columns: []string{"x"}, Scale: tables.Standard}, tables.Labels{Columns: []string{"red", "round"}}, tables.Missing{"NA"})),
	} {
		read := new(tables.Preparation)
		require.NoError(t, json.Unmarshal([]byte(file), read))
		require.Equal(t, p, read)
		require.Equal(t, file, string(must.M1(json.Marshal(p))))
	}
}

// A row alone, as in a request, becomes that of the table, by each rule.
func TestPreparation_rowsAloneAreThoseOfTheTable(t *testing.T) {
	const n = 50
	a, b, kinds, days := make([]float64, n), make([]int64, n), make([]string, n), make([]string, n)
	for i := range n {
		a[i], b[i], kinds[i], days[i] = float64(i*i%37)/3, int64(i%5), string(rune('a'+i%7)), fmt.Sprintf("2026-%02d-%02dT%02d:00", 1+i%12, 1+i%28, i%24)
	}
	a[3], kinds[4], days[5] = math.NaN(), "", ""
	table := must.M1(data.New(data.Named("a", a, n), data.Named("b", b, n), data.Named("kind", kinds, n), data.Named("day", days, n)))
	for _, scale := range []tables.Scale{0, tables.Standard, tables.MinMax, tables.Robust, tables.Uniform, tables.Normal} {
		p := must.M1(tables.Fit(table,
			tables.Numbers{Columns: []string{"a"}, Fill: tables.FillMedian, Indicator: true, Log: true, ClipQuantiles: [2]float64{0.1, 0.9}, Scale: scale},
			tables.Numbers{Columns: []string{"b"}, Bins: 3},
			tables.Categories{Columns: []string{"kind"}, Fill: tables.FillMostFrequent, RareShare: 0.15},
			tables.Dates{Columns: []string{"day"}, Parts: []string{"hour", "month cycle", "days"}, Since: "2026-01-01", Fill: tables.FillValue, Value: "2026-01-01", Scale: min(scale, tables.Robust)},
			tables.Crossed{Columns: []string{"a", "kind"}, Buckets: 20}, tables.Crossed{Columns: []string{"b", "kind"}, Integers: true},
			tables.Function{Name: "f", Columns: []string{"b", "day"}, Of: func(row []string) ([]float32, error) { return []float32{float32(len(row[0]) + len(row[1]))}, nil }}))
		all := must.M1(table.Map(p.Inputs))
		for i := range n {
			one := must.M1(inputsOf(p, map[string]any{"a": a[i], "b": b[i], "kind": kinds[i], "day": days[i]}))
			require.Equal(t, must.M1(all.Slice(i, i+1)).Fields(), one.Fields())
		}
	}
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

// pandas writes 17.0 for a whole number where others are missing, and True. A number of a row is the class of its
// value; a hash of texts, which is another one of 17, takes the table's text alone.
func TestTable_numbersOfTexts(t *testing.T) {
	table := must.M1(data.New(data.Named("id", []string{"17.0", "18.0"}, 2), data.Named("ok", []string{"True", "False"}, 2), data.Named("r", []string{"1e-07", "0.5"}, 2)))
	p := must.M1(tables.Fit(table, tables.Categories{Columns: []string{"id", "ok", "r"}, Unknown: tables.UnknownZeros}))
	want := must.M1(must.M1(table.Map(p.Inputs)).Field("x")).Flat
	rows := must.M1(p.Table(map[string]any{"id": 17.0, "ok": true, "r": 1e-07}, map[string]any{"id": json.Number("18"), "ok": false, "r": float32(0.5)}))
	require.Equal(t, want, must.M1(must.M1(rows.Map(p.Inputs)).Field("x")).Flat)
	columns := must.M1(data.New(data.Named("id", []float64{17, 18}, 2), data.Named("ok", []bool{true, false}, 2), data.Named("r", []float64{1e-07, 0.5}, 2)))
	require.Equal(t, want, must.M1(must.M1(columns.Map(p.Inputs)).Field("x")).Flat)

	for _, rule := range []tables.Columns{tables.Hashed{Columns: []string{"id", "ok"}, Buckets: 1000, Integers: true}, tables.Crossed{Columns: []string{"id", "ok"}, Unknown: tables.UnknownOwn}} {
		p = must.M1(tables.Fit(table, rule))
		_, err := p.Table(map[string]any{"id": 17.0, "ok": "True"})
		require.ErrorContains(t, err, `column "id": row 1: the value 17 is a number, and the column was fitted as texts`)
		missing := must.M1(p.Table(map[string]any{"id": math.NaN(), "ok": nil}))
		require.Equal(t, []string{""}, must.M1(missing.Field("id")).Flat, "a missing number")
		_, err = columns.Map(p.Inputs)
		require.ErrorContains(t, err, `column "id" is float64, and was fitted as texts`)
	}

	ids := must.M1(tables.Fit(must.M1(data.New(data.Named("id", []string{"9007199254740993", "5"}, 2))), tables.Categories{Columns: []string{"id"}, Unknown: tables.UnknownOwn}))
	rows = must.M1(ids.Table(map[string]any{"id": int64(9007199254740992)}))
	require.Equal(t, []float32{0, 0, 1}, must.M1(must.M1(rows.Map(ids.Inputs)).Field("x")).Flat, "another id with the same float64")
}
