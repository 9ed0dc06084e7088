package losses_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn/losses"
)

func TestSampledSoftmax(t *testing.T) {
	queries := [][]float64{{1, -2}, {0.5, 3}, {-1, 0.25}}
	candidates := [][]float64{{2, 1}, {0, 1}, {1, 1}, {-1, 2}, {0.5, 0.5}}
	odds := []float64{-1, -2, -0.5, math.Inf(1), -3}
	ids := []int32{4, 7, 4, 1, 7}
	exec := graph.MustNewExec(plugintest.CPU(t), func(queries, candidates, odds, ids *graph.Node) (each, plain, slope *graph.Node) {
		each = losses.SampledSoftmax(queries, candidates, odds, ids)
		return each, losses.SampledSoftmax(queries, candidates, nil, nil), graph.Gradient(graph.ReduceAllSum(each), candidates)[0]
	})
	each, plain, slope, err := exec.Call3(queries, candidates, odds, ids)
	require.NoError(t, err)
	for i, q := range queries {
		sum, all, own := 0.0, 0.0, 0.0
		for j, c := range candidates {
			z := q[0]*c[0] + q[1]*c[1]
			all += math.Exp(z)
			if i == j {
				own = z
			}
			if i == j || ids[j] != ids[i] {
				sum += math.Exp(z - odds[j])
			}
		}
		require.InDelta(t, math.Log(sum)-(own-odds[i]), each.Value().([]float64)[i], 1e-12)
		require.InDelta(t, math.Log(all)-own, plain.Value().([]float64)[i], 1e-12)
	}
	require.Equal(t, []float64{0, 0}, slope.Value().([][]float64)[3], "a candidate that does not count")
	for _, row := range slope.Value().([][]float64) {
		for _, v := range row {
			require.False(t, math.IsNaN(v))
		}
	}
	_, _, _, err = exec.Call3(queries, candidates[:2], odds[:2], ids[:2])
	require.ErrorContains(t, err, "expected floats [batch, n] and [batch+k, n], and two candidates or more")
}
