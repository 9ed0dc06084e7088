package autodiff_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// Elements that negative padding removes have no gradient; the padding value has that of all places it fills.
func TestPad_gradient(t *testing.T) {
	for name, row := range map[string]struct {
		axis  graph.PadAxis
		size  int
		wantX []float64
		fill  float64
	}{
		"both ends":   {graph.PadAxis{Start: 1, End: 2}, 6, []float64{2, 3, 4}, 1 + 5 + 6},
		"between":     {graph.PadAxis{Interior: 1}, 5, []float64{1, 3, 5}, 2 + 4},
		"cut":         {graph.PadAxis{Start: -1}, 2, []float64{0, 1, 2}, 0},
		"cut and add": {graph.PadAxis{Start: 2, End: -1}, 4, []float64{3, 4, 0}, 1 + 2},
	} {
		got := slopes(t, func(in []node) node {
			y := graph.Pad(in[0], in[1], row.axis)
			return graph.Mul(y, graph.AddScalar(graph.IotaFull(y.Graph(), y.Shape()), 1))
		}, []float64{7, 8, 9}, 0.5)
		require.Equal(t, [][]float64{row.wantX, {row.fill}}, got, name)
	}
}
