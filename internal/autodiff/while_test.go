package autodiff_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// The condition and the body may use nodes from outside of the loop.
func TestWhile(t *testing.T) {
	unchanged := func() (before, after []node) { return nil, nil }
	e, err := graph.NewExec(plugintest.CPU(t), func(x, bound, factor node) []node {
		return autodiff.While(x.Graph(), []node{x, graph.ScalarZero(x.Graph(), x.DType())}, func(v []node) node {
			return graph.LessThan(v[0], bound)
		}, func(v []node) []node { return []node{graph.Mul(v[0], factor), graph.AddScalar(v[1], 1)} }, unchanged)
	})
	require.NoError(t, err)
	for in, want := range map[[3]float64][2]float64{{1, 100, 3}: {243, 5}, {200, 100, 3}: {200, 0}} {
		last, turns, err := e.Call2(in[0], in[1], in[2])
		require.NoError(t, err)
		require.Equal(t, want, [2]float64{last.Value().(float64), turns.Value().(float64)})
	}
}

func TestWhile_theConditionChangesNothing(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "g")
	defer g.Finalize()
	x := graph.Const(g, 1.0)
	err := graphs.Catch(func() {
		autodiff.While(g, []node{x}, func(v []node) node { return graph.LessThan(v[0], v[0]) }, func(v []node) []node { return v },
			func() (before, after []node) { return []node{x}, []node{x} })
	})
	require.ErrorContains(t, err, "the condition sets variables or draws random numbers: only the body may")
}
