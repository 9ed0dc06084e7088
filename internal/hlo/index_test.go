package hlo_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// A gather clamps indices, and scatters add at equal ones and drop those out of range.
func TestIndex_outOfRange(t *testing.T) {
	table := [][]float32{{1, 2}, {3, 4}, {5, 6}}
	out := graph.MustExecOnceN(open(t), func(table, at, rows *graph.Node) []*graph.Node {
		sum := graph.ScatterSum(graph.ZerosLike(table), at, rows, false, false)
		most := graph.ScatterMax(table, at, rows, false, false)
		least := graph.ScatterMin(table, at, rows, false, false)
		return []*graph.Node{graph.Gather(table, at), sum, most, least}
	}, table, [][]int32{{2}, {-1}, {2}, {7}}, [][]float32{{10, 0}, {20, 0}, {30, 9}, {40, 0}})
	for i, want := range [][][]float32{
		{{5, 6}, {1, 2}, {5, 6}, {5, 6}}, {{0, 0}, {0, 0}, {40, 9}}, {{1, 2}, {3, 4}, {30, 9}}, {{1, 2}, {3, 4}, {5, 0}},
	} {
		require.Equal(t, want, out[i].Value(), "output %d", i)
	}
}

func TestDynamicSlice_isMovedInside(t *testing.T) {
	out := graph.MustExecOnceN(open(t), func(x, at, part *graph.Node) []*graph.Node {
		return []*graph.Node{graph.DynamicSlice(x, []*graph.Node{at}, []int{2}), graph.DynamicUpdateSlice(x, part, []*graph.Node{at})}
	}, []float32{1, 2, 3, 4}, int32(9), []float32{7, 8})
	require.Equal(t, []float32{3, 4}, out[0].Value())
	require.Equal(t, []float32{1, 2, 7, 8}, out[1].Value())
}
