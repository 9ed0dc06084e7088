package autodiff

import "github.com/gomlx/gomlx/core/graph"

// Custom is a value with a gradient of its own by inputs, of which the first has the value's shape. gradient gives
// these, in the inputs' shapes, for the value and the gradient with respect to it; it is differentiated where a second
// derivative is asked for, so it may use the inputs too.
func Custom(value *graph.Node, inputs []*graph.Node, gradient func(value, v *graph.Node) []*graph.Node) *graph.Node {
	var out *graph.Node
	flat := func(nodes []*graph.Node) *graph.Node {
		list := make([]*graph.Node, len(nodes))
		for i, n := range nodes {
			list[i] = graph.Reshape(n, -1)
		}
		return join(list, 0)
	}
	// GoMLX has gradients of one's own for the identity alone: it is that of all inputs, side by side.
	all := graph.IdentityWithCustomGradient(flat(inputs), func(_, v *graph.Node) *graph.Node {
		v = graph.Slice(v, graph.AxisRange(0, value.Shape().Size()))
		return flat(gradient(out, graph.Reshape(v, value.Shape().Dimensions...)))
	})
	first := graph.Slice(all, graph.AxisRange(0, value.Shape().Size()))
	out = instead(graph.StopGradient(value), graph.Reshape(first, value.Shape().Dimensions...))
	return out
}
