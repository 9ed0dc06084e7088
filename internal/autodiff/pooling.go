package autodiff

import (
	"math"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// maxTaps is the largest window that pooling takes apart: the program grows with it.
const maxTaps = 64

// pooling is the rule of ReduceWindow. GoMLX, like JAX, makes select_and_scatter of a maximum and reduce_window of a sum.
// XLA's CPU backend has a slow path for both of these: 5 to 100 times slower than element by element operations on each
// position of the window (a tap) in turn.
func pooling(node, v *graph.Node) []*graph.Node {
	a := attributesOf(node)
	w := window{sizes: a.ints("windowDimensions"), strides: a.ints("strides"), padding: a.pairs("paddings")}
	taps := 1
	for _, size := range w.sizes {
		taps *= size
	}
	dilated := len(a.ints("baseDilations")) > 0 || len(a.ints("windowDilations")) > 0
	x, kind := node.Inputs()[0], backends.ReduceOpType(a.int("reductionType"))
	extremum := kind == backends.ReduceOpMax || kind == backends.ReduceOpMin
	if w.padding == nil {
		w.padding = make([][2]int, x.Rank())
	}
	switch {
	case dilated || len(w.strides) == 0 || v.Shape().Size() == 0 || !extremum && kind != backends.ReduceOpSum:
	case !extremum && w.tiles():
		return []*graph.Node{w.repeat(v, x)}
	case taps <= maxTaps && extremum:
		return []*graph.Node{w.toFirst(node, v, x, taps)}
	case taps <= maxTaps:
		return []*graph.Node{w.scatter(x, taps, func(int) *graph.Node { return v })}
	}
	return stock[graph.NodeTypeReduceWindow](node, []*graph.Node{v}, v.Shape())
}

// window is a pooling window, per axis of its input.
type window struct {
	sizes, strides []int
	padding        [][2]int
}

// tap is the position of the i-th element of a window, in row-major order.
func (w window) tap(i int) []int {
	position := make([]int, len(w.sizes))
	for axis, size := range slices.Backward(w.sizes) {
		position[axis] = i % size
		i /= size
	}
	return position
}

// toFirst gives v to the first element of each window that equals node, the window's extremum.
func (w window) toFirst(node, v, x *graph.Node, taps int) *graph.Node {
	g, around := x.Graph(), make([]graph.PadAxis, x.Rank())
	for axis, p := range w.padding {
		around[axis] = graph.PadAxis{Start: p[0], End: p[1]}
	}
	// What is outside x must not be chosen, and nothing equals NaN.
	padded := graph.Pad(x, graph.Scalar(g, x.DType(), math.NaN()), around...)
	number := func(i int) *graph.Node { return graph.Scalar(g, dtypes.Int32, i) }
	chosen := number(taps)
	for i := taps - 1; i >= 0; i-- {
		at := make([]graph.SliceAxisSpec, x.Rank())
		for axis, from := range w.tap(i) {
			n := v.Shape().Dimensions[axis]
			at[axis] = graph.AxisRange(from, from+(n-1)*w.strides[axis]+1).Stride(w.strides[axis])
		}
		chosen = graph.Where(graph.Equal(graph.Slice(padded, at...), node), number(i), chosen)
	}
	zero := graph.ScalarZero(g, v.DType())
	return w.scatter(x, taps, func(i int) *graph.Node { return graph.Where(graph.Equal(chosen, number(i)), v, zero) })
}

// scatter sums what each tap contributes, in the shape of the output, at its place in x.
func (w window) scatter(x *graph.Node, taps int, contribution func(tap int) *graph.Node) *graph.Node {
	zero := graph.ScalarZero(x.Graph(), x.DType())
	var sum *graph.Node
	for i := range taps {
		part, around := contribution(i), make([]graph.PadAxis, x.Rank())
		for axis, from := range w.tap(i) {
			start := from - w.padding[axis][0]
			reach := (part.Shape().Dimensions[axis]-1)*w.strides[axis] + 1
			around[axis] = graph.PadAxis{Start: start, Interior: w.strides[axis] - 1, End: x.Shape().Dimensions[axis] - start - reach}
		}
		part = graph.Pad(part, zero, around...)
		if sum == nil {
			sum = part
		} else {
			sum = graph.Add(sum, part)
		}
	}
	return sum
}

// tiles tells whether the windows lie side by side.
func (w window) tiles() bool {
	for axis, size := range w.sizes {
		if size != w.strides[axis] || w.padding[axis] != [2]int{} {
			return false
		}
	}
	return true
}

// repeat spreads v where windows lie side by side: each element has one window, and what is left over at the end none.
func (w window) repeat(v, x *graph.Node) *graph.Node {
	var split, broadcast, covered []int
	rest := make([]graph.PadAxis, v.Rank())
	for axis, n := range v.Shape().Dimensions {
		split = append(split, n, 1)
		broadcast = append(broadcast, n, w.sizes[axis])
		covered = append(covered, n*w.sizes[axis])
		rest[axis].End = x.Shape().Dimensions[axis] - n*w.sizes[axis]
	}
	all := graph.Reshape(graph.BroadcastToDims(graph.Reshape(v, split...), broadcast...), covered...)
	if all.Shape().Equal(x.Shape()) {
		return all
	}
	return graph.Pad(all, graph.ScalarZero(v.Graph(), v.DType()), rest...)
}
