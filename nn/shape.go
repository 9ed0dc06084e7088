package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/outputs"
)

// MaxPool takes the maximum over non-overlapping windows of this length in each spatial axis: [batch, spatial…, n] to
// [batch, spatial/window…, n]. It drops the places after the last whole window, as padding VALID.
//
// For other strides or padding use graph.MaxPool with PaddingPerDim: its PadSame ignores the stride, unlike [Conv].
type MaxPool struct{ Window int }

func (p MaxPool) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(p, scope, x) }

func (p MaxPool) build(scope *model.Scope, x *graph.Node) *graph.Node {
	return pool("MaxPool", p.Window, graph.MaxPool, scope, x)
}

// MeanPool is [MaxPool] with means.
type MeanPool struct{ Window int }

func (p MeanPool) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(p, scope, x) }

func (p MeanPool) build(scope *model.Scope, x *graph.Node) *graph.Node {
	return pool("MeanPool", p.Window, graph.MeanPool, scope, x)
}

func pool(layer string, window int, build func(*graph.Node) *graph.PoolBuilder, scope *model.Scope, x *graph.Node) *graph.Node {
	atLeastOne(layer, scope, "Window", window)
	spatial(layer, scope, x)
	for _, n := range x.Shape().Dimensions[1 : x.Rank()-1] {
		if window > n {
			fail(layer, scope, "windows of %d do not fit the input %s: expected at most the length of each spatial axis, %d: use a smaller window, or fewer such layers", window, x.Shape(), n)
		}
	}
	return build(x).Window(window).Done()
}

// GlobalMeanPool is the mean over all spatial axes: [batch, spatial…, n] to [batch, n]. With a mask ([MaskOf]) it is
// the mean over the places that count, 0 if there are none.
type GlobalMeanPool struct{}

func (p GlobalMeanPool) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return apply(p, scope, x)
}

func (GlobalMeanPool) build(scope *model.Scope, x *graph.Node) *graph.Node {
	spatial("GlobalMeanPool", scope, x)
	axes := rangeOf(1, x.Rank()-2)
	if mask := MaskOf(x); mask != nil {
		counts := graph.BroadcastToDims(outputs.Expanded(mask, x), x.Shape().Dimensions...)
		places := graph.ReduceSum(graph.ConvertDType(counts, x.DType()), axes...)
		return graph.Div(graph.ReduceSum(graph.Where(counts, x, graph.ZerosLike(x)), axes...), graph.MaxScalar(places, 1))
	}
	return graph.ReduceMean(x, axes...)
}

// GlobalMaxPool is [GlobalMeanPool] with maxima.
type GlobalMaxPool struct{}

func (p GlobalMaxPool) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return apply(p, scope, x)
}

func (GlobalMaxPool) build(scope *model.Scope, x *graph.Node) *graph.Node {
	spatial("GlobalMaxPool", scope, x)
	axes := rangeOf(1, x.Rank()-2)
	mask := MaskOf(x)
	if mask == nil {
		return graph.ReduceMax(x, axes...)
	}
	counts := graph.BroadcastToDims(outputs.Expanded(mask, x), x.Shape().Dimensions...)
	y := graph.MaskedReduceMax(x, counts, axes...)
	return graph.Where(graph.LogicalAny(counts, axes...), y, graph.ZerosLike(y))
}

// LastStep is the last time step of each sequence: [batch, places, …] to [batch, …]. With a mask ([MaskOf]) it is the
// last place that counts, or 0.
type LastStep struct{}

func (l LastStep) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(l, scope, x) }

func (LastStep) build(scope *model.Scope, x *graph.Node) *graph.Node {
	if x.Rank() < 2 {
		fail("LastStep", scope, "the input is %s, expected [batch, places, …]", x.Shape())
	}
	mask := MaskOf(x)
	if mask == nil {
		return graph.Squeeze(graph.Slice(x, graph.AxisRange(), graph.AxisElem(-1)), 1)
	}
	at := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, mask.Shape().Dimensions...), 1)
	last := graph.ReduceAndKeep(graph.Where(mask, at, graph.MulScalar(graph.OnesLike(at), -1)), graph.ReduceMax, 1)
	is := graph.Equal(at, graph.BroadcastToShape(last, at.Shape()))
	is = graph.BroadcastToDims(outputs.Expanded(is, x), x.Shape().Dimensions...)
	return graph.ReduceSum(graph.Where(is, x, graph.ZerosLike(x)), 1)
}

func spatial(layer string, scope *model.Scope, x *graph.Node) {
	floats(layer, scope, x, 3, "[batch, spatial…, n], as [batch, height, width, 1]")
}

// Flatten reshapes [batch, …] to [batch, n].
type Flatten struct{}

func (f Flatten) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(f, scope, x) }

func (Flatten) build(scope *model.Scope, x *graph.Node) *graph.Node {
	return reshaped("Flatten", scope, x, -1)
}

// Reshape reshapes each example to these dimensions; one may be -1.
type Reshape []int

func (r Reshape) Apply(scope *model.Scope, x *graph.Node) *graph.Node { return apply(r, scope, x) }

func (r Reshape) build(scope *model.Scope, x *graph.Node) *graph.Node {
	return reshaped("Reshape", scope, x, r...)
}

func reshaped(layer string, scope *model.Scope, x *graph.Node, dims ...int) *graph.Node {
	if x.IsScalar() {
		fail(layer, scope, "the input is a scalar, expected [batch, …]")
	}
	return graph.Reshape(x, append([]int{x.Shape().Dimensions[0]}, dims...)...)
}
