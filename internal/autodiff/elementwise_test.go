package autodiff_test

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// slopes returns the gradients of the sum of f's elements.
func slopes(t *testing.T, f func(in []node) node, in ...any) (all [][]float64) {
	t.Helper()
	e, err := graph.NewExec(plugintest.CPU(t), func(in []node) []node { return autodiff.Gradient(graph.ReduceAllSum(f(in)), in...) })
	require.NoError(t, err)
	defer e.Finalize()
	out, err := e.Call(in...)
	require.NoError(t, err)
	for _, o := range out {
		all = append(all, tensors.MustCopyFlatData[float64](o))
	}
	return all
}

// A broadcast operand's gradient is the sum over the axes along which it is broadcast.
func TestElementwise_broadcast(t *testing.T) {
	a, row, column, scalar := [][]float64{{1, 2, 3}, {4, 5, 6}}, [][]float64{{2, 4, 8}}, [][]float64{{2}, {4}}, 2.0
	of := func(f func(a, b node) node) func(in []node) node {
		return func(in []node) node { return f(in[0], in[1]) }
	}
	for name, row := range map[string]struct {
		f     func(a, b node) node
		b     any
		wantB []float64
	}{
		"div by a row":    {graph.Div, row, []float64{-5. / 4, -7. / 16, -9. / 64}},
		"div by a column": {graph.Div, column, []float64{-6. / 4, -15. / 16}},
		"div by a scalar": {graph.Div, scalar, []float64{-21. / 4}},
		"pow of a row":    {graph.Pow, [][]float64{{1, 1, 1}}, []float64{4 * math.Log(4), 2*math.Log(2) + 5*math.Log(5), 3*math.Log(3) + 6*math.Log(6)}},
		"rem by a row":    {graph.Rem, row, []float64{-2, -1, 0}},
		"max with a row":  {graph.Max, row, []float64{1, 1, 2}},
	} {
		got := slopes(t, of(row.f), a, row.b)
		require.InDeltaSlice(t, row.wantB, got[1], 1e-12, name)
		require.Len(t, got[0], 6)
	}
}

func TestElementwise_clampPassesToTheBoundThatHolds(t *testing.T) {
	got := slopes(t, func(in []node) node { return graph.Clamp(in[0], in[1], in[2]) }, []float64{0, 0, 0}, []float64{-1, 0.5, 2}, []float64{1, 1, 1})
	require.Equal(t, [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, got)
}
