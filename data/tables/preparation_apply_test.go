package tables_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

func TestPreparation_apply(t *testing.T) {
	p := fitBirds(t)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	read := &tables.Preparation{}
	require.NoError(t, json.Unmarshal(text, read))
	again, err := json.Marshal(read)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))

	for _, p := range []*tables.Preparation{p, read} {
		set, err := readTable(t, birds).Map(p.Apply)
		require.NoError(t, err)
		want, err := data.New(data.X([]float32{
			0, 0, 0, 1, 0, 0, 1, 0,
			0.5, 1, 1, 0, 0, 0, 0, 1,
			0.5, 0, 0, 1, 0, 1, 0, 0,
			1, 0, 1, 0, 0, 0, 1, 0}, 4, 8),
			data.Named("age", []int32{0, 1, 2, 0}, 4), data.Y([]int32{1, 0, 1, 0}, 4), data.Named("weight", []float32{0.5, 1, 1, 2}, 4))
		require.NoError(t, err)
		require.Equal(t, want, set)
		names, err := p.Names("x")
		require.NoError(t, err)
		require.Equal(t, []string{"mass", "mass missing", "island=Biscoe", "island=Dream", "island unknown", "sex=f", "sex=m", "sex=?"}, names)
		for f, want := range map[string][]string{"y": {"a", "b"}, "age": {"1", "2", "10"}} {
			classes, err := p.Classes(f)
			require.NoError(t, err)
			require.Equal(t, want, classes)
		}

		// New data: columns in another order, none of the labels, an unknown island; in a stream, too.
		table := readTable(t, "age,sex,island,mass\n10,f,Mars,\n")
		one, err := table.Map(p.Inputs)
		require.NoError(t, err)
		wanted, err := data.New(data.X([]float32{0.5, 1, 0, 0, 1, 1, 0, 0}, 1, 8), data.Named("age", []int32{2}, 1))
		require.NoError(t, err)
		require.Equal(t, wanted, one)
		for _, row := range []map[string]any{
			{"age": 10, "sex": "f", "island": "Mars", "mass": nil},
			{"age": "10", "sex": " f", "island": "Mars", "mass": ""},
			{"age": 10.0, "sex": "f", "island": "Mars", "mass": math.NaN()},
			{"age": json.Number("10"), "sex": "f", "island": "Mars", "mass": nil, "species": "b"},
		} {
			got, err := inputsOf(p, row)
			require.NoError(t, err)
			require.Equal(t, wanted, got)
		}
		batch, err := data.Peek(data.Map(table.Batches(1).All(), p.Inputs))
		require.NoError(t, err)
		require.Equal(t, wanted.Fields(), batch.Fields)
	}
}

func TestInputs_ofLabelsAlone(t *testing.T) {
	table := column(t, "kind", "a", "b")
	p, err := tables.Fit(table, tables.Labels{Columns: []string{"kind"}})
	require.NoError(t, err)
	_, err = table.Map(p.Inputs)
	require.ErrorContains(t, err, "it has only labels, expected inputs")
}

// Neither another window's value fills a missing one, nor does a row of several columns end before the window.
func TestPreparation_ofWindowsAlone(t *testing.T) {
	missing := float32(math.NaN())
	windows := must1(data.New(data.Named("a", []float32{1, missing, missing, 4}, 2, 2), data.Named("b", []string{"u", "v", "v", "v"}, 2, 2)))
	p := must1(tables.Fit(windows, tables.Numbers{Columns: []string{"a"}, Fill: tables.FillForward, Leading: tables.FillValue, Value: 9},
		tables.Crossed{Columns: []string{"b", "a"}, Field: "crossed", Buckets: 2}))
	set := must1(windows.Map(p.Apply))
	require.Equal(t, data.X([]float32{1, 1, 9, 4}, 2, 2, 1), set.Fields()[0])
	require.Equal(t, []int{2, 2, 2}, set.Fields()[1].Array.Dims)
}

// Columns of windows keep their axes, and each value is prepared as if it were alone.
func TestPreparation_ofWindows(t *testing.T) {
	table := func(dims []int, flat []float32, kinds ...string) *data.Set {
		n := dims[0]
		return must1(data.New(data.Named("mass", flat, dims...), data.Named("kind", kinds, dims...), data.Named("next mass", flat[:n], n, 1), data.Named("shop", kinds[:n], n)))
	}
	windows := table([]int{2, 3}, []float32{1, 2, 3, 5, 7, 9}, "a", "b", "a", "c", "b", "b")
	p := must1(tables.Fit(windows, tables.Numbers{Columns: []string{"mass"}, Scale: tables.MinMax}, tables.Categories{Columns: []string{"kind"}},
		tables.Categories{Columns: []string{"shop"}, Integers: true}, tables.Labels{Columns: []string{"next mass"}, Numbers: true}))
	again := new(tables.Preparation)
	require.NoError(t, json.Unmarshal(must1(json.Marshal(p)), again))
	set := must1(windows.Map(again.Apply))
	require.Equal(t, []data.Field{
		data.X([]float32{0, 1, 0, 0, 0.125, 0, 1, 0, 0.25, 1, 0, 0, 0.5, 0, 0, 1, 0.75, 0, 1, 0, 1, 0, 1, 0}, 2, 3, 4),
		data.Named("shop", []int32{0, 1}, 2), data.Y([]float32{1, 2}, 2, 1),
	}, set.Fields())
	var row map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"mass": [5, "7", 9], "kind": ["c", "b", "b"], "shop": "b"}`), &row))
	one := must1(inputsOf(p, row))
	require.Equal(t, must1(must1(windows.Slice(1, 2)).Map(p.Inputs)), one)
	row["mass"] = []any{1, 2}
	_, err := p.Table(row)
	require.ErrorContains(t, err, `column "mass": row 1: the value is a list of 2, expected one of 3`)
	for want, other := range map[string]*data.Set{
		`column "mass" is float32 [2 2], expected as in fitting [n 3]`:     table([]int{2, 2}, []float32{1, 2, 3, 4}, "a", "a", "a", "a"),
		`column "mass" is float32 [3], expected as in fitting [n 3]`:       table([]int{3}, []float32{1, 2, 3}, "a", "a", "a"),
		`column "kind": of the values of all examples row 5: "d" is not a`: table([]int{2, 3}, []float32{1, 2, 3, 5, 7, 9}, "a", "b", "a", "c", "d", "b"),
	} {
		_, err := other.Map(p.Apply)
		require.ErrorContains(t, err, want)
	}
	_, err = tables.Fit(windows, tables.Numbers{Columns: []string{"mass", "next mass"}})
	require.ErrorContains(t, err, `field "x" has columns "mass", [n] and then [3], and "next mass", [1]: expected the same, or fields of their own`)
}
