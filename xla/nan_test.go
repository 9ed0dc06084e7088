package xla_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// The maximum and minimum of numbers with a NaN are NaN, as in JAX.
func TestReduceMax_ofNaN(t *testing.T) {
	r := plugintest.CPU(t)
	nan := float32(math.NaN())
	long := make([]float32, 1000)
	long[777] = nan
	for _, x := range [][]float32{{nan, 1}, {1, nan}, long} {
		e, err := graph.NewExec(r, func(x *graph.Node) []*graph.Node {
			return []*graph.Node{graph.ReduceAllMax(x), graph.ReduceAllMin(x), graph.ReduceAllMax(graph.Softmax(x))}
		})
		require.NoError(t, err)
		values, err := e.Call(x)
		require.NoError(t, err)
		for i, v := range values {
			require.True(t, math.IsNaN(float64(v.Value().(float32))), "output %d of %d numbers: %v", i, len(x), v)
		}
		e.Finalize()
	}
}
