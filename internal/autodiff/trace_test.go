package autodiff

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// A cut has the nodes between parameters and outputs, and the others that these use, without constants.
func TestCut(t *testing.T) {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	defer backend.Finalize()
	g := graph.NewGraph(backend, "g")
	defer g.Finalize()
	shape := shapes.Make(dtypes.Float32, 2)
	outside := graph.Parameter(g, "outside", shape)
	params, first, end := tracing(g, false, []shapes.Shape{shape, shape})
	in := params[0]
	sum := graph.Add(in[0], outside)
	unused := graph.Neg(in[1])
	out := graph.Mul(sum, graph.Const(g, []float32{1, 2}))
	body := cut(g, first, in, []*graph.Node{out})
	end()
	require.Equal(t, []*graph.Node{sum, out}, body.nodes)
	require.NotContains(t, body.nodes, unused)
	require.Equal(t, []*graph.Node{outside}, body.captured, "a constant is not passed")

	x, y, z := graph.Parameter(g, "x", shape), graph.Parameter(g, "y", shape), graph.Parameter(g, "z", shape)
	now := body.at([]*graph.Node{x, y}, []*graph.Node{z}, nil)
	require.Equal(t, []*graph.Node{x, z}, now.of(sum).Inputs())
	require.Same(t, now.of(sum), now.of(out).Inputs()[0])
	require.Same(t, unused, now.of(unused), "a node outside stays")
	require.ErrorContains(t, graphs.Catch(func() { body.at([]*graph.Node{x}, nil, nil) }),
		"a function of 2 parameters and 1 captured values was given 1 and 0")
}

// Placeholders and parameters are not constants, nor is anything made of them.
func TestConstant(t *testing.T) {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	defer backend.Finalize()
	g := graph.NewGraph(backend, "g")
	defer g.Finalize()
	shape := shapes.Make(dtypes.Float32)
	two := graph.Const(g, float32(2))
	for want, list := range map[bool][]*graph.Node{
		true:  {two, graph.Exp(graph.Neg(two))},
		false: {graph.Parameter(g, "x", shape), placeholder(g, shape), graph.Add(two, placeholder(g, shape))},
	} {
		for _, n := range list {
			require.Equal(t, want, constant(n), n.String())
		}
	}
}
