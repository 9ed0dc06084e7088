package pretrained

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
)

// The last place that the mask counts, also of padding in front; the first of a text without any.
func TestLast(t *testing.T) {
	e, err := graph.NewExec(plugintest.Go(t), func(x, mask *graph.Node) (lasts, places *graph.Node) {
		return last(nn.Masked(x, mask)), place(x, graph.Const(x.Graph(), []int32{2, 0, 1, 9}))
	})
	require.NoError(t, err)
	lasts, places, err := e.Call2([][][]float32{{{1}, {2}, {3}}, {{4}, {5}, {6}}, {{7}, {8}, {9}}, {{10}, {11}, {12}}},
		[][]bool{{true, true, false}, {false, true, true}, {true, false, true}, {false, false, false}})
	require.NoError(t, err)
	require.Equal(t, [][]float32{{2}, {6}, {9}, {10}}, lasts.Value())
	require.Equal(t, [][]float32{{3}, {4}, {8}, {0}}, places.Value(), "0 for a place outside")
}
