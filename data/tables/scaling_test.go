package tables_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

// The figures of scikit-learn's StandardScaler for the same numbers.
func TestScalingIsThatOfScikitLearn(t *testing.T) {
	values := []float64{1, 10, 5, 2, 20, 5, 4, 60, 5}
	x32 := make([]float32, len(values))
	x8 := make([]uint8, len(values))
	for i, v := range values {
		x32[i], x8[i] = float32(v), uint8(v)
	}
	want := []float64{-1.0690449676496978, -0.9258200997725515, 0.0, -0.2672612419124245, -0.46291004988627577, 0.0, 1.3363062095621219, 1.3887301496588271, 0.0}
	for _, flat := range []any{values, x32, x8} {
		a := data.Array{Flat: flat, Dims: []int{3, 3}}
		s, err := tables.FitScaling(a)
		require.NoError(t, err)
		require.InDeltaSlice(t, []float64{2.3333333333333335, 30.0, 5.0}, s.Mean, 1e-12)
		require.InDeltaSlice(t, []float64{1.247219128924647, 21.602468994692867, 1.0}, s.Std, 1e-12)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		var again tables.Scaling
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, s, again)
		got, err := again.Apply(a)
		require.NoError(t, err)
		if f, ok := got.Flat.([]float64); ok {
			require.InDeltaSlice(t, want, f, 1e-12)
		} else {
			require.InDeltaSlice(t, want, got.Flat, 1e-6)
		}
		require.Equal(t, []int{3, 3}, got.Dims)
	}
	constant, err := tables.FitScaling(data.Array{Flat: []float32{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, Dims: []int{7}})
	require.NoError(t, err)
	require.Equal(t, []float64{1}, constant.Std)
}

func TestScalingRefuses(t *testing.T) {
	for want, a := range map[string]data.Array{
		"int32 [1]":                 {Flat: []int32{1}, Dims: []int{1}},
		"with at least one example": {Flat: []float32{}, Dims: []int{0, 3}},
		"column 1 has values":       {Flat: []float64{1, math.NaN(), 1, 2}, Dims: []int{2, 2}},
		"Flat is nil":               {},
	} {
		_, err := tables.FitScaling(a)
		require.ErrorContains(t, err, want)
	}
	_, err := tables.Scaling{Mean: []float64{1}, Std: []float64{0}}.Apply(data.Array{Flat: []float32{1}, Dims: []int{1}})
	require.ErrorContains(t, err, "no deviation of 0")
	_, err = tables.Scaling{Mean: []float64{1}, Std: []float64{1}}.Apply(data.Array{Flat: []float32{1, 2}, Dims: []int{1, 2}})
	require.ErrorContains(t, err, "1 means and 1 deviations to float32 [1 2]")
}

func TestFitScaling_texts(t *testing.T) {
	_, err := tables.FitScaling(field(t, column(t, "kind", "a", "b", "c"), "kind"))
	require.ErrorContains(t, err, "the array is string [3]")
}
