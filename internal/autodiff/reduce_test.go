package autodiff_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func TestReduce_gradients(t *testing.T) {
	x := [][]float64{{2, 0, 3}, {4, 5, 5}}
	for name, row := range map[string]struct {
		f    func(x node) node
		want []float64
	}{
		"product of all, one is 0": {func(x node) node { return graph.ReduceMultiply(x) }, []float64{0, 600, 0, 0, 0, 0}},
		"product of rows":          {func(x node) node { return graph.ReduceMultiply(x, 1) }, []float64{0, 6, 0, 25, 20, 20}},
		"product of columns":       {func(x node) node { return graph.ReduceMultiply(x, 0) }, []float64{4, 5, 5, 2, 0, 3}},
		"product of one":           {func(x node) node { return graph.ReduceMultiply(graph.InsertAxes(x, 0), 0) }, []float64{1, 1, 1, 1, 1, 1}},
		"max of rows, each equal":  {func(x node) node { return graph.ReduceMax(x, 1) }, []float64{0, 0, 1, 0, 1, 1}},
		"min of all":               {func(x node) node { return graph.ReduceMin(x) }, []float64{0, 1, 0, 0, 0, 0}},
	} {
		require.Equal(t, [][]float64{row.want}, slopes(t, func(in []node) node { return row.f(in[0]) }, x), name)
	}
}
