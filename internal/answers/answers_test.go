package answers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/answers"
)

// An answer is the same for each kind of output as JSON and as cells of CSV, with names of classes or numbers.
func TestColumns(t *testing.T) {
	half := func(dims ...int) data.Array {
		flat := []float32{0.5}
		for _, n := range dims {
			flat = slices.Repeat(flat, n)
		}
		return data.Array{Flat: flat, Dims: dims}
	}
	array := func(flat any, dims ...int) data.Array { return data.Array{Flat: flat, Dims: dims} }
	for json1, row := range map[string]struct {
		outputs map[string]data.Array
		classes map[string][]string
		csv     string
	}{
		`{"y":[0.5,0.5]}`: {map[string]data.Array{"y": half(1, 2)}, nil, "[y_0 y_1] [0.5 0.5]"},
		`{"y_class":"b","y_probability":{"a":0.5,"b":0.5}}`: {map[string]data.Array{"y_probability": half(1, 2), "y_class": array([]string{"b"}, 1)},
			map[string][]string{"y": {"a", "b"}}, "[y_probability_a y_probability_b y_class] [0.5 0.5 b]"},
		`{"y_class":1,"y_probability":{"0":0.5,"1":0.5}}`: {map[string]data.Array{"y_probability": half(1, 2), "y_class": array([]int32{1}, 1)},
			map[string][]string{"y": {"0", "1"}}, "[y_probability_0 y_probability_1 y_class] [0.5 0.5 1]"},
		`{"y_class":"a","y_probability":{"b":0.5}}`: {map[string]data.Array{"y_probability": half(1, 1), "y_class": array([]string{"a"}, 1)},
			map[string][]string{"y": {"a", "b"}}, "[y_probability_b y_class] [0.5 a]"},
		`{"y_class":["b"],"y_probability":{"a":0.5,"b":0.5}}`: {map[string]data.Array{"y_probability": half(1, 2), "y_class": array([]string{"", "b"}, 1, 2)},
			map[string][]string{"y": {"a", "b"}}, "[y_probability_a y_probability_b y_class_a y_class_b] [0.5 0.5 0 1]"},
		`{"y_class":["1"],"y_probability":{"0":0.5,"1":0.5}}`: {map[string]data.Array{"y_probability": half(1, 2), "y_class": array([]int32{0, 1}, 1, 2)},
			map[string][]string{"y": {"0", "1"}}, "[y_probability_0 y_probability_1 y_class_0 y_class_1] [0.5 0.5 0 1]"},
		`{"y_class":["a","b"],"y_probability":[0.5,0.5,0.5,0.5]}`: {map[string]data.Array{"y_probability": half(1, 2, 2), "y_class": array([]string{"a", "b"}, 1, 2)},
			map[string][]string{"y": {"a", "b"}}, "[y_probability_0 y_probability_1 y_probability_2 y_probability_3 y_class_0 y_class_1] [0.5 0.5 0.5 0.5 a b]"},
	} {
		require.Empty(t, answers.NotFinite(row.outputs))
		columns := answers.Columns(row.outputs, row.classes)
		text, err := json.Marshal(answers.Object(columns, 0))
		require.NoError(t, err)
		require.JSONEq(t, json1, string(text))
		var header []string
		var cells []any
		for _, c := range columns {
			header, cells = append(header, c.Header...), append(cells, c.Cells(0)...)
		}
		require.Equal(t, row.csv, fmt.Sprint(header, " ", cells))
	}
}

// NaN and infinities are texts, and their rows are named.
func TestNotFinite(t *testing.T) {
	outputs := map[string]data.Array{"a": {Flat: []float32{1, 2, 3, float32(math.NaN())}, Dims: []int{4}},
		"b": {Flat: []float64{1, 2, 3, math.Inf(1), math.Inf(-1), math.NaN(), 4, 5}, Dims: []int{4, 2}}, "c": {Flat: []string{"", "", "", ""}, Dims: []int{4}}}
	require.Equal(t, []string{"", `the output "b" has Infinity`, `the output "b" has -Infinity`, `the output "a" has NaN`}, answers.NotFinite(outputs))
	columns := answers.Columns(outputs, nil)
	for row, want := range []string{`{"a":[1],"b":[1,2],"c":[""]}`, `{"a":[2],"b":[3,"Infinity"],"c":[""]}`, `{"a":[3],"b":["-Infinity","NaN"],"c":[""]}`,
		`{"a":["NaN"],"b":[4,5],"c":[""]}`} {
		text, err := json.Marshal(answers.Object(columns, row))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.Equal(t, []any{float64(3), "Infinity"}, columns[1].Cells(1))
	text, err := json.Marshal(answers.Object(answers.Blank(columns), 0))
	require.NoError(t, err)
	require.Equal(t, `{"a":null,"b":null,"c":null}`, string(text))
	require.Equal(t, []any{"", ""}, answers.Blank(columns)[1].Cells(0))
}
