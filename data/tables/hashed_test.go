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

// The hash is FNV-1a, as a Python program computes it, on any platform.
func TestHashed_hashIsFNV1a(t *testing.T) {
	g := readRules(t)
	for text, want := range g.Hashes {
		for i, buckets := range []int{3, 1000} {
			table := column(t, "a", text)
			p := must.M1(tables.Fit(table, tables.Hashed{Columns: []string{"a"}, Integers: true, Buckets: buckets}))
			require.Equal(t, []int32{want[i]}, field(t, must.M1(table.Map(again(t, p).Apply)), "a").Flat, text)
		}
	}
	table := must.M1(data.New(data.Named("a", []string{"", "Dream"}, 2), data.Named("b", []string{"f", "f"}, 2)))
	p := must.M1(tables.Fit(table, tables.Crossed{Columns: []string{"a", "b"}, Integers: true, Buckets: 1000}))
	require.Equal(t, []int32{g.Hashes[`"" x f`][1], g.Hashes["Dream x f"][1]}, field(t, must.M1(table.Map(again(t, p).Apply)), "a x b").Flat)
}

func TestHashed_outputs(t *testing.T) {
	g := readRules(t)
	a, b := []string{"u", "v", ""}, []int64{1, 2, 3}
	table := must.M1(data.New(data.Named("a", a, 3), data.Named("b", b, 3)))
	hot, counts := make([][]float64, 3), make([][]float64, 3)
	for i := range 3 {
		hot[i], counts[i] = make([]float64, 6), make([]float64, 3)
		of := strconv.FormatInt(b[i], 10)
		hot[i][g.Hashes[a[i]][0]], hot[i][3+g.Hashes[of][0]] = 1, 1
		counts[i][g.Hashes["a="+a[i]][0]]++
		counts[i][g.Hashes["b="+of][0]]++
	}
	columns := []string{"a", "b"}
	p := must.M1(tables.Fit(table, tables.Hashed{Columns: columns, Buckets: 3}))
	near(t, hot, field(t, must.M1(table.Map(again(t, p).Apply)), "x"), "hot")
	require.Equal(t, []string{"a=0", "a=1", "a=2", "b=0", "b=1", "b=2"}, must.M1(p.Names("x")))
	p = must.M1(tables.Fit(table, tables.Hashed{Columns: columns, Buckets: 3, Counts: true}))
	near(t, counts, field(t, must.M1(table.Map(again(t, p).Apply)), "x"), "counts")
	p = must.M1(tables.Fit(table, tables.Hashed{Columns: columns, Buckets: 3, Integers: true, Field: "k"}))
	require.Equal(t, []int{3, 2}, field(t, must.M1(table.Map(again(t, p).Apply)), "k").Dims)
	_, err := p.Classes("k")
	require.ErrorContains(t, err, `field "k" holds hashed, expected the class numbers of one column`)
	for want, settings := range map[string]string{`its output is "sums"`: `"buckets":3,"output":"sums"`, "the Buckets are 100000": `"buckets":100000`} {
		err := json.Unmarshal([]byte(`{"version":1,"columns":[{"column":"a","field":"x","as":"hashed",`+settings+`}]}`), new(tables.Preparation))
		require.ErrorContains(t, err, want)
	}
}

func TestCrossed_classes(t *testing.T) {
	table := must.M1(data.New(data.Named("a", []string{"Dream", "Dream", "Torgersen"}, 3), data.Named("b", []bool{true, false, true}, 3), data.Named("y", []float32{1, 2, 3}, 3)))
	p := must.M1(tables.Fit(table, tables.Crossed{Columns: []string{"a", "b"}, Unknown: tables.UnknownOwn}, tables.Categories{Columns: []string{"a"}},
		tables.Labels{Columns: []string{"y"}, Numbers: true}))
	for _, p := range []*tables.Preparation{p, again(t, p)} {
		require.Equal(t, []string{"a x b=Dream x false", "a x b=Dream x true", "a x b=Torgersen x true", "a x b unknown", "a=Dream", "a=Torgersen"}, must.M1(p.Names("x")))
		near(t, [][]float64{{0, 1, 0, 0, 1, 0}, {1, 0, 0, 0, 1, 0}, {0, 0, 1, 0, 0, 1}}, field(t, must.M1(table.Map(p.Apply)), "x"), "crossed")
		inputs, labels := p.Columns()
		require.Equal(t, []string{"a", "b"}, inputs)
		require.Equal(t, []string{"y"}, labels)
		require.Equal(t, []float32{0, 0, 0, 1, 0, 1}, must.M1(inputsOf(p, map[string]any{"a": "Torgersen", "b": false})).Fields()[0].Array.Flat)
	}
	p = must.M1(tables.Fit(table, tables.Crossed{Columns: []string{"a", "b"}, Integers: true}))
	require.Equal(t, []string{"Dream x false", "Dream x true", "Torgersen x true"}, must.M1(p.Classes("a x b")))
	_, err := inputsOf(p, map[string]any{"a": "Torgersen", "b": nil})
	require.ErrorContains(t, err, `column "a x b": row 1: "Torgersen x \"\"" is not a class of the training data`)
	for want, rules := range map[string][]tables.Columns{
		`column "y" has labels, and "a x y", a one-hot, takes it`: {tables.Crossed{Columns: []string{"a", "y"}}, tables.Labels{Columns: []string{"y"}, Numbers: true}},
		`the Columns are ["a"], expected at least two`:            {tables.Crossed{Columns: []string{"a"}}},
		`column "a" is named twice`:                               {tables.Crossed{Columns: []string{"a", "a"}}},
		`both Buckets, which take each class, and Unknown`:        {tables.Crossed{Columns: []string{"a", "b"}, Buckets: 2, Unknown: tables.UnknownOwn}},
		`the Buckets are 0, expected 1 to 65536`:                  {tables.Hashed{Columns: []string{"a"}}},
		`both Counts and Integers`:                                {tables.Hashed{Columns: []string{"a"}, Buckets: 2, Counts: true, Integers: true}},
		`there are no Columns`:                                    {tables.Hashed{Buckets: 2}},
	} {
		_, err := tables.Fit(table, rules...)
		require.ErrorContains(t, err, want)
	}
}

// Values with the separator in them make other classes.
func TestCrossed_classesOfDifferentRowsDiffer(t *testing.T) {
	table := must.M1(data.New(data.Named("a", []string{`a x b`, `a`, `"a x b"`, `"a`, ``, `""`}, 6), data.Named("b", []string{`c`, `b x c`, `c`, `b" x c`, `c`, `c`}, 6)))
	p := must.M1(tables.Fit(table, tables.Crossed{Columns: []string{"a", "b"}, Integers: true}))
	require.Len(t, must.M1(p.Classes("a x b")), 6)
}
