package autodiff

import (
	"reflect"

	"github.com/gomlx/gomlx/core/graph"
)

// x gets the adjoints of its elements, 0 where negative padding removes them; the padding value gets the sum of the
// others.
func pad(node, v *graph.Node) []*graph.Node {
	x, around := node.Inputs()[0], node.Inputs()[1]
	back, at := make([]graph.PadAxis, x.Rank()), make([]graph.SliceAxisSpec, x.Rank())
	for axis := range at {
		at[axis] = graph.AxisRange()
	}
	cut := false
	axes := attributesOf(node).field("axesConfig", reflect.Slice)
	for axis := range axes.Len() {
		p, n := attributes{node, axes.Index(axis)}, x.Shape().Dimensions[axis]
		start, end, step := p.int("Start"), p.int("End"), p.int("Interior")+1
		cut = cut || start < 0 || end < 0
		back[axis] = graph.PadAxis{Start: max(0, -start), End: max(0, -end)}
		start = max(0, start)
		at[axis] = graph.AxisRange(start, start+max(0, (n-1)*step+1)).Stride(step)
	}
	of := v
	if cut {
		of = graph.Pad(of, graph.ScalarZero(v.Graph(), v.DType()), back...)
	}
	of = graph.Slice(of, at...)
	if constant(around) {
		return []*graph.Node{of, nil}
	}
	return []*graph.Node{of, graph.Sub(graph.ReduceAllSum(v), graph.ReduceAllSum(of))}
}
