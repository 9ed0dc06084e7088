package autodiff

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// The program grows with the window.
const maxTaps = 64

// At ties the window's first element in row-major order gets all of v.
func pooling(node, v *graph.Node) []*graph.Node {
	a := attributesOf(node)
	w := window{sizes: a.ints("windowDimensions"), strides: a.ints("strides"), padding: a.pairs("paddings")}
	taps := 1
	for _, size := range w.sizes {
		taps *= size
	}
	dilated := len(a.ints("inputDilations")) > 0 || len(a.ints("windowDilations")) > 0
	x, kind := node.Inputs()[0], compute.ReduceOpType(a.int("reductionType"))
	extremum := kind == compute.ReduceOpMax || kind == compute.ReduceOpMin
	if w.padding == nil {
		w.padding = make([][2]int, x.Rank())
	}
	switch {
	case dilated || !x.DType().IsFloat() || len(w.strides) == 0 || v.Shape().IsZeroSize() || !extremum && kind != compute.ReduceOpSum:
	case !extremum && w.tiles():
		return []*graph.Node{w.fill(w.tile(v, node, false), x)}
	case taps <= maxTaps && extremum:
		return []*graph.Node{w.toFirst(node, v, x, taps)}
	case taps <= maxTaps:
		return []*graph.Node{w.scatter(x, taps, func(int) *graph.Node { return v })}
	}
	return stock[graph.NodeTypeReduceWindow](node, []*graph.Node{v}, v.Shape())
}

type window struct {
	sizes, strides []int
	padding        [][2]int
}

// row-major
func (w window) tap(i int) []int {
	position := make([]int, len(w.sizes))
	for axis, size := range slices.Backward(w.sizes) {
		position[axis] = i % size
		i /= size
	}
	return position
}

// The index, in node's shape, of each window's first element that equals node, its extremum.
func (w window) first(node, x *graph.Node, taps int) *graph.Node {
	around := make([]graph.PadAxis, x.Rank())
	for axis, p := range w.padding {
		around[axis] = graph.PadAxis{Start: p[0], End: p[1]}
	}
	if slices.ContainsFunc(w.padding, func(p [2]int) bool { return p != [2]int{} }) {
		// NaN equals nothing, so padding is never chosen.
		x = graph.Pad(x, graph.Scalar(x.Graph(), x.DType(), math.NaN()), around...)
	}
	chosen := number(x, taps)
	for i := taps - 1; i >= 0; i-- {
		at := make([]graph.SliceAxisSpec, x.Rank())
		for axis, from := range w.tap(i) {
			reach := (node.Shape().Dimensions[axis]-1)*w.strides[axis] + 1
			at[axis] = graph.AxisRange(from, from+reach).Stride(w.strides[axis])
		}
		chosen = graph.Where(graph.Equal(graph.Slice(x, at...), node), number(x, i), chosen)
	}
	return chosen
}

func number(x *graph.Node, i int) *graph.Node { return graph.Scalar(x.Graph(), dtypes.Int32, i) }

func (w window) toFirst(node, v, x *graph.Node, taps int) *graph.Node {
	zero := graph.ScalarZero(x.Graph(), v.DType())
	chosen := w.first(node, x, taps)
	if w.tiles() {
		numbers := w.tile(graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, taps), 0), node, true)
		return w.fill(graph.Where(graph.Equal(w.tile(chosen, node, false), numbers), w.tile(v, node, false), zero), x)
	}
	return w.scatter(x, taps, func(i int) *graph.Node { return graph.Where(graph.Equal(chosen, number(x, i)), v, zero) })
}

// Each tap's contribution, in the output's shape, is added at its position in x.
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

// adjacent windows without overlap
func (w window) tiles() bool {
	for axis, size := range w.sizes {
		if size != w.strides[axis] || w.padding[axis] != [2]int{} {
			return false
		}
	}
	return true
}

// tile returns, for windows that tile x, the window's value for each element or, with elements, each window's elements.
func (w window) tile(values, output *graph.Node, elements bool) *graph.Node {
	var from, to, covered []int
	for axis, n := range output.Shape().Dimensions {
		if elements {
			from = append(from, 1, w.sizes[axis])
		} else {
			from = append(from, n, 1)
		}
		to = append(to, n, w.sizes[axis])
		covered = append(covered, n*w.sizes[axis])
	}
	return graph.Reshape(graph.BroadcastToDims(graph.Reshape(values, from...), to...), covered...)
}

func (w window) fill(tiled, x *graph.Node) *graph.Node {
	if tiled.Shape().Equal(x.Shape()) {
		return tiled
	}
	rest := make([]graph.PadAxis, x.Rank())
	for axis, n := range x.Shape().Dimensions {
		rest[axis].End = n - tiled.Shape().Dimensions[axis]
	}
	return graph.Pad(tiled, graph.ScalarZero(x.Graph(), x.DType()), rest...)
}
