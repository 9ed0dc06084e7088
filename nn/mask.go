package nn

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/layering"
)

// MaskOf returns the mask of a sequence [batch, places, …]: bool [batch, places], true at places that count, or nil
// if all do. An [Embedding] with Padding sets it, or [Masked]. A layer of this package, and a custom one within it,
// passes it on to an output with this batch and places and at least three axes. Recurrent layers, [Attention],
// [GlobalMeanPool], [GlobalMaxPool], [LastStep], [BatchNorm], and the losses and metrics of package flaxlike exclude
// masked places.
func MaskOf(x *graph.Node) *graph.Node { return layering.Masks(x)[x] }

// Masked replaces a sequence's mask ([MaskOf]) by lengths, integers [batch], or bool [batch, places]; nil for none.
func Masked(x, mask *graph.Node) *graph.Node {
	if x.Rank() < 2 {
		panic(fmt.Errorf("nn: Masked: the input is %s, expected [batch, places, …]", x.Shape()))
	}
	if mask != nil {
		mask = counted(mask, x.Shape().Dimensions[0], x.Shape().Dimensions[1])
	}
	y := graph.IdentityWithCustomGradient(x, func(_, v *graph.Node) *graph.Node { return v }) // Identity would return x itself
	layering.Masks(x)[y] = mask
	return y
}

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

func placesMask(layer string, scope *model.Scope, mask *graph.Node, batch, places int) *graph.Node {
	if !fitsPlaces(mask, batch, places) {
		fail(layer, scope, "%w", wrongMask(mask, batch, places))
	}
	return counted(mask, batch, places)
}

func fitsPlaces(mask *graph.Node, batch, places int) bool {
	return mask.Shape().CheckDims(batch) == nil && mask.DType().IsInt() || mask.Shape().CheckDims(batch, places) == nil && mask.DType() == boolean
}
