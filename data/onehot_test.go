package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
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
