package autodiff_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// The gradient of each place goes back to the element that came there, also along an inner axis and descending.
func TestSort_gradient(t *testing.T) {
	x := [][]float64{{3, 1, 2}, {-1, 5, 0}}
	weights := func(in []node) node { return graph.Const(in[0].Graph(), [][]float64{{1, 10, 100}, {1, 10, 100}}) }
	for name, row := range map[string]struct {
		ascending bool
		want      []float64
	}{"ascending": {true, []float64{100, 1, 10, 1, 100, 10}}, "descending": {false, []float64{1, 100, 10, 100, 1, 10}}} {
		got := slopes(t, func(in []node) node { return graph.Mul(graph.Sort(in[0], 1, row.ascending), weights(in)) }, x)
		require.Equal(t, [][]float64{row.want}, got, name)
	}
}
