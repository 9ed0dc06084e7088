package autodiff

import (
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// extremum is the rule of ReduceMax and ReduceMin. Every element that equals the extremum gets v, as in GoMLX (JAX
// shares v among them).
func extremum(node, v *graph.Node) []*graph.Node {
	x := node.Inputs()[0]
	kept := x.Shape().Clone()
	axes := attributesOf(node).ints("axes")
	if len(axes) == 0 {
		axes = axesFrom(0, x.Rank())
	}
	for _, axis := range axes {
		kept.Dimensions[axis] = 1
	}
	chosen := graph.Equal(x, graph.ReshapeWithShape(node, kept))
	spread := graph.BroadcastToShape(graph.ReshapeWithShape(v, kept), x.Shape())
	return []*graph.Node{graph.Where(chosen, spread, graph.ScalarZero(v.Graph(), v.DType()))}
}
