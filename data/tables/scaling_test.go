package tables_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

func TestOneHot(t *testing.T) {
	for _, flat := range []any{[]int32{2, 0}, []int64{2, 0}, []uint8{2, 0}, []int8{2, 0}, []int16{2, 0}, []uint16{2, 0}, []uint32{2, 0}} {
		got, err := data.OneHot(data.Array{Flat: flat, Dims: []int{2}}, 3)
		require.NoError(t, err)
		require.Equal(t, data.Array{Flat: []float32{0, 0, 1, 1, 0, 0}, Dims: []int{2, 3}}, got)
	}
	for want, row := range map[string]struct {
		a data.Array
		n int
	}{
		"data: one-hot: label 1 is 3, expected 0 to 2":                                                        {data.Array{Flat: []int32{0, 3}, Dims: []int{2}}, 3},
		"data: one-hot: label 0 is -1, expected 0 to 2":                                                       {data.Array{Flat: []int32{-1, 3}, Dims: []int{2}}, 3},
		"data: one-hot: labels are float32, expected int8 to int64 or uint8 to uint32":                        {data.Array{Flat: []float32{0}, Dims: []int{1}}, 3},
		"data: one-hot of 1 labels in 0 classes: expected at least 1, and at most 17179869184 numbers in all": {data.Array{Flat: []int32{0}, Dims: []int{1}}, 0},
	} {
		_, err := data.OneHot(row.a, row.n)
		require.EqualError(t, err, want)
	}
}

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

func TestOnField(t *testing.T) {
	b := data.Batch{Size: 1, Fields: []data.Field{data.X([]float32{1}, 1), data.Y([]int32{1}, 1)}}
	hot := data.OnField("y", func(a data.Array) (data.Array, error) { return data.OneHot(a, 2) })
	got, err := hot(b)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1}, got.Fields[1].Array.Flat)
	require.Equal(t, []int32{1}, b.Fields[1].Array.Flat)
	_, err = hot(data.Batch{})
	require.ErrorContains(t, err, `no field "y"`)
}

func TestSplitStratified(t *testing.T) {
	y := make([]int32, 100)
	for i := range y {
		if i < 10 {
			y[i] = 7
		}
	}
	set, err := data.New(data.Y(y, 100))
	require.NoError(t, err)
	rare := func(s *data.Set) (n int) {
		for _, v := range s.Fields()[0].Array.Flat.([]int32) {
			if v == 7 {
				n++
			}
		}
		return n
	}
	for seed := range uint64(20) {
		train, test, err := set.Split(0.8, seed, data.Stratified("y"))
		require.NoError(t, err)
		require.Equal(t, []int{80, 20, 8, 2}, []int{train.Len(), test.Len(), rare(train), rare(test)})
	}
	for want, row := range map[string]struct {
		field    string
		fraction float64
	}{
		"data: split stratified: the fraction is 1": {"y", 1},
		`no field "z"`: {"z", 0.5},
		"class 7 has 10 examples: at the fraction 0.99 one side would have none": {"y", 0.99},
	} {
		_, _, err := set.Split(row.fraction, 1, data.Stratified(row.field))
		require.ErrorContains(t, err, want)
	}
}
