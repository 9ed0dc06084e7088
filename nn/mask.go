package nn

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
)

// MaskOf says which places of a sequence [batch, places, …] count: bool [batch, places], or nil if all do. An
// [Embedding] with a Padding makes the mask, or [Masked]. A layer of this package, and a program's own in one of them,
// hands it on where its output has the batch and the places of its input and at least three axes. Any other output has
// none. Recurrences, [Attention], [GlobalMeanPool], [BatchNorm], and the losses and metrics of package flaxlike leave
// out the places that do not count.
//
// Nodes that a function makes of others by itself have no mask: give them one by [Masked].
func MaskOf(x *graph.Node) *graph.Node { return layering.Masks(x)[x] }

// Masked is a sequence with a mask, in place of that which it may have ([MaskOf]): lengths, whole numbers [batch], or
// bool [batch, places]; nil for none.
func Masked(x, mask *graph.Node) *graph.Node {
	if x.Rank() < 2 {
		panic(fmt.Errorf("nn: Masked: the input is %s, expected [batch, places, …]", x.Shape()))
	}
	if mask != nil {
		mask = counted(mask, x.Shape().Dimensions[0], x.Shape().Dimensions[1])
	}
	y := graph.IdentityWithCustomGradient(x, func(_, v *graph.Node) *graph.Node { return v }) // Identity has none
	layering.Masks(x)[y] = mask
	return y
}

// counted are the places of sequences that count, [batch, places] of bool: mask itself if it is that, or the first ones
// where it has their number for each example, [batch] of whole numbers.
func counted(mask *graph.Node, batch, places int) *graph.Node {
	if !fitsPlaces(mask, batch, places) {
		panic(fmt.Errorf("nn: %w", wrongMask(mask, batch, places)))
	}
	if mask.Rank() == 1 {
		at := graph.Iota(mask.Graph(), shapes.Make(mask.DType(), batch, places), 1)
		return graph.LessThan(at, graph.BroadcastToDims(graph.Reshape(mask, batch, 1), batch, places))
	}
	return mask
}

func wrongMask(mask *graph.Node, batch, places int) error {
	return fmt.Errorf("the mask is %s, expected lengths, whole numbers [%d], or bool [%[2]d, %d]", mask.Shape(), batch, places)
}

// placesMask is counted of a layer's setting.
func placesMask(layer string, scope *model.Scope, mask *graph.Node, batch, places int) *graph.Node {
	if !fitsPlaces(mask, batch, places) {
		fail(layer, scope, "%w", wrongMask(mask, batch, places))
	}
	return counted(mask, batch, places)
}

// fitsPlaces tells whether a mask is lengths or places of so many sequences.
func fitsPlaces(mask *graph.Node, batch, places int) bool {
	return mask.Shape().CheckDims(batch) == nil && mask.DType().IsInt() || mask.Shape().CheckDims(batch, places) == nil && mask.DType() == boolean
}
