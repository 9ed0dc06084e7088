package autodiff_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// An iteration keeps an output once, however often it is returned: the gradients of an RNN's input and of its state's
// product use the same numbers.
func TestLoop_stacks(t *testing.T) {
	g := graph.NewGraph(plugintest.CPU(t), "stacks")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float64, 5, 2, 4))
	u := graph.Parameter(g, "u", shapes.Make(dtypes.Float64, 4, 4))
	h := graph.ZerosLike(graph.Slice(x, graph.AxisElem(0)))
	last, outs := autodiff.Loop{Length: 5}.Run(g, []node{graph.Reshape(h, 2, 4)}, []node{x}, nil, func(carry, at, _ []node) (next, out []node) {
		n := graph.Tanh(graph.Add(at[0], graph.Dot(carry[0], u).Product()))
		return []node{n}, []node{n, at[0], n}
	}, nil)
	require.Same(t, outs[0], outs[2])
	forward := g.Nodes()
	autodiff.Gradient(graph.ReduceAllSum(last[0]), x, u)
	stacks := func(nodes []node) (n int) {
		for _, w := range nodes {
			if w.Type() == graph.NodeTypeWhile {
				n += w.NumOutputs()
			}
		}
		return n
	}
	// The counter, the state, x, u; two outputs, the state before each iteration, its product.
	require.Equal(t, 4+2+1+1, stacks(forward))
	// The counter, the adjoint of the state, the states, x, their products, u; the adjoints of x, which are the
	// products'; for a gradient of this one: the adjoint before each iteration, a product and the tanh.
	require.Equal(t, 6+1+3, stacks(g.Nodes()[len(forward):]))
}
