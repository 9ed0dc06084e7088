package autodiff

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"
)

// Custom is a value with a gradient of its own by inputs. The first input has the value's shape, all have its dtype.
// gradient returns the gradients by the inputs, in their shapes, from the inputs, the value and the gradient by the
// value. It is differentiated for a second derivative. It must take values of the graph from its arguments alone: a
// loop computes its body again for the gradient, with other nodes.
func Custom(value *graph.Node, inputs []*graph.Node, gradient func(inputs []*graph.Node, value, v *graph.Node) []*graph.Node) *graph.Node {
	parts := append(slices.Clone(inputs), graph.StopGradient(value))
	// GoMLX has gradients of one's own for the identity alone: it is that of all inputs and the value, side by side.
	all := graph.IdentityWithCustomGradient(flat(parts), func(all, v *graph.Node) *graph.Node {
		now := partsOf(all.Inputs()[0], parts)
		inputs, value := now[:len(inputs)], now[len(inputs)]
		out := Custom(value, inputs, gradient)
		of := gradient(inputs, out, partsOf(v, parts[:1])[0])
		return flat(append(slices.Clone(of), graph.ZerosLike(value)))
	})
	return instead(parts[len(inputs)], partsOf(all, parts[:1])[0])
}

// flat is all nodes in one, of one axis.
func flat(nodes []*graph.Node) *graph.Node {
	list := make([]*graph.Node, len(nodes))
	for i, n := range nodes {
		list[i] = graph.Reshape(n, -1)
	}
	return join(list, 0)
}

// partsOf returns the parts of a flat node, in the shapes of like.
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
