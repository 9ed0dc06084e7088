package autodiff

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// Custom returns value with a custom gradient. The first input has the value's shape, and all have its dtype. gradient
// returns the gradients by the inputs from the inputs, the value and its adjoint v; a second derivative differentiates
// it. It must use only its arguments: a loop rebuilds its body with other nodes.
func Custom(value *graph.Node, inputs []*graph.Node, gradient func(inputs []*graph.Node, value, v *graph.Node) []*graph.Node) *graph.Node {
	parts := append(slices.Clone(inputs), graph.StopGradient(value))
	// GoMLX has custom gradients for the identity alone: this is that of all inputs and the value, concatenated.
	all := graph.IdentityWithCustomGradient(flat(parts), func(all, v *graph.Node) *graph.Node {
		now := partsOf(all.Inputs()[0], parts)
		inputs, value := now[:len(inputs)], now[len(inputs)]
		out := Custom(value, inputs, gradient)
		of := gradient(inputs, out, partsOf(v, parts[:1])[0])
		return flat(append(slices.Clone(of), graph.ZerosLike(value)))
	})
	return Instead(parts[len(inputs)], partsOf(all, parts[:1])[0])
}

func flat(nodes []*graph.Node) *graph.Node {
	list := make([]*graph.Node, len(nodes))
	for i, n := range nodes {
		list[i] = graph.Reshape(n, -1)
	}
	return join(list, 0)
}

func partsOf(all *graph.Node, like []*graph.Node) []*graph.Node {
	parts := make([]*graph.Node, len(like))
	at := 0
	for i, n := range like {
		end := at + n.Shape().Size()
		parts[i] = graph.Reshape(graph.Slice(all, graph.AxisRange(at, end)), n.Shape().Dimensions...)
		at = end
	}
	return parts
}
