package autodiff_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla/ops"
)

// A Cond or Switch is one case in the program, and its gradient another: there is no loop, and no select of the results
// of both functions. S25: conditionals in a row grew faster than JAX's.
func TestBranch_isACase(t *testing.T) {
	cond := func(x node) node {
		return ops.Cond(graph.GreaterThan(graph.ReduceAllSum(x), scalar64(x, 0)),
			func() []node { return []node{graph.Tanh(x)} }, func() []node { return []node{graph.Mul(x, x)} })[0]
	}
	choice := func(x node) node {
		number := graph.ConvertDType(graph.ReduceAllSum(x), dtypes.Int64)
		return ops.Switch(number, func() []node { return []node{graph.Tanh(x)} }, func() []node { return []node{graph.Sin(x)} },
			func() []node { return []node{graph.Mul(x, x)} })[0]
	}
	for name, row := range map[string]struct {
		build func(x node) node
		cases int
		taken int // from the forward case, by a select that is always true
	}{
		"a Cond":              {cond, 1, 0},
		"a Switch":            {choice, 1, 0},
		"a Cond's gradient":   {func(x node) node { return ops.Gradient(graph.ReduceAllSum(cond(x)), x)[0] }, 2, 1},
		"a Switch's gradient": {func(x node) node { return ops.Gradient(graph.ReduceAllSum(choice(x)), x)[0] }, 2, 1},
		"a Cond of a Cond":    {func(x node) node { return cond(cond(x)) }, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(lower(func(g *graph.Graph) []node {
				return []node{row.build(graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 3)))}
			}))
			require.Equal(t, row.cases, strings.Count(text, "stablehlo.case"), text)
			require.NotContains(t, text, "stablehlo.while")
			require.NotContains(t, text, "stablehlo.if")
			require.Equal(t, row.taken, strings.Count(text, "stablehlo.select"), text)
		})
	}
}

// The gradient of conditionals within each other has a case for each: it takes what the inner ones computed from the
// outer one's results, and builds none of them again.
func TestBranch_gradientOfNestedOnes(t *testing.T) {
	var nested func(x node, depth int) node
	nested = func(x node, depth int) node {
		if depth == 0 {
			return graph.Tanh(x)
		}
		return ops.Cond(graph.GreaterThan(graph.ReduceAllSum(x), scalar64(x, float64(depth))),
			func() []node { return []node{nested(graph.Sin(x), depth-1)} }, func() []node { return []node{graph.Mul(x, x)} })[0]
	}
	for _, depth := range []int{1, 3, 6} {
		text := string(lower(func(g *graph.Graph) []node {
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 3))
			return []node{ops.Gradient(graph.ReduceAllSum(nested(x, depth)), x)[0]}
		}))
		require.Equal(t, 2*depth, strings.Count(text, "stablehlo.case"), depth)
	}
}

// A branch may be built twice in one function, as between Checkpoint and StopCheckpoint, and captures constants of any
// size and scalars of any dtype.
func TestBranch_again(t *testing.T) {
	for name, again := range map[string]bool{"once": false, "again": true} {
		t.Run(name, func(t *testing.T) {
			g := graph.NewGraph(plugintest.CPU(t), "again")
			defer g.Finalize()
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 3))
			number := graph.Parameter(g, "number", shapes.Make(dtypes.Int8))
			y := x
			if again {
				y = y.Checkpoint()
			}
			list := graph.Const(g, []float64{1, 2, 3})
			y = ops.Switch(number, func() []node { return []node{graph.Mul(y, list)} },
				func() []node { return []node{graph.Mul(graph.Sin(y), graph.Tanh(graph.Mul(y, list)))} })[0]
			y = graph.Mul(y, graph.Sin(y))
			if again {
				y = y.StopCheckpoint()
			}
			loss := graph.ReduceAllSum(y)
			first := ops.Gradient(loss, x)[0]
			g.Compile(loss, first)
			values, h := []float64{0.5, -0.25, 1}, 1e-6
			run := func(n int8) (float64, []float64) {
				out := g.Run(values, n)
				return out[0].Value().(float64), tensors.MustCopyFlatData[float64](out[1])
			}
			for _, n := range []int8{-3, 0, 1, 100} {
				_, got := run(n)
				for i := range values {
					v := values[i]
					values[i] = v + h
					up, _ := run(n)
					values[i] = v - h
					down, _ := run(n)
					values[i] = v
					require.InDelta(t, (up-down)/(2*h), got[i], 1e-7)
				}
			}
		})
	}
}
