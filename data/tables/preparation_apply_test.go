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
