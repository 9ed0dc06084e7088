package xla_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// A program is compiled once for each operation, shape and attribute; the oldest are freed first.
//
//lazo:norace
func TestEager_compilesOnce(t *testing.T) {
	e := newEager(t, plugintest.Uncached(t))
	before := pjrt.Live().Executables
	sum := func(values []float32, axis int) {
		require.NoError(t, look(e, func(g *graph.Graph) {
			x := graph.InsertAxes(graph.Const(g, values), 0)
			graph.ReduceSum(graph.Add(x, x), axis)
		}))
	}
	for _, row := range []struct {
		name   string
		values []float32
		axis   int
		want   int
	}{
		{"the first time", []float32{1, 2}, 0, 3},
		{"again", []float32{1, 2}, 0, 3},
		{"other values", []float32{3, 4}, 0, 3},
		{"another attribute", []float32{3, 4}, 1, 4},
		{"another shape", []float32{3, 4, 5}, 1, 7},
	} {
		sum(row.values, row.axis)
		require.Equal(t, row.want, e.Compiled(), row.name)
		require.Equal(t, int64(row.want), pjrt.Live().Executables-before, row.name)
	}
	e.KeepPrograms(7)
	for n := 4; n < 20; n++ {
		sum(make([]float32, n), 1)
		require.Equal(t, int64(7), pjrt.Live().Executables-before)
	}
	compiled := e.Compiled()
	sum(make([]float32, 19), 1)
	require.Equal(t, compiled, e.Compiled(), "the latest are kept")
	require.NoError(t, e.Close())
	require.Equal(t, before, pjrt.Live().Executables)
	sum(make([]float32, 19), 1)
	require.Equal(t, compiled+3, e.Compiled(), "after Close it compiles again")
}

// An output that is not an input is returned unchanged, without compiling or copying.
func TestEager_copiesOnlyWhatIsTaken(t *testing.T) {
	r := plugintest.Uncached(t)
	e := newEager(t, r)
	before := pjrt.Live().Buffers
	outputs, err := e.Run("step", nil, func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Neg(graph.Const(g, []float32{1, 2}))}
	})
	require.NoError(t, err)
	compiled := e.Compiled()
	twice, err := e.Run("step", nil, func(g *graph.Graph) []*graph.Node {
		x := graph.Neg(graph.Const(g, []float32{1, 2}))
		return []*graph.Node{x, x}
	})
	require.NoError(t, err)
	require.Equal(t, compiled+1, e.Compiled(), "the second time it is copied")
	for _, b := range append(outputs, twice...) {
		require.NoError(t, b.Finalize())
	}
	require.Equal(t, before, pjrt.Live().Buffers)
}
