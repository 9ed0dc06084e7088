package flaxlike

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// masksParam is where a graph has the masks of its sequences.
const masksParam = "/lazo.flaxlike.masks"

func masks(x *managed.Node) map[*managed.Node]*managed.Node {
	if found, ok := model.GetGraphParam(x, masksParam); ok {
		return found.(map[*managed.Node]*managed.Node)
	}
	all := map[*managed.Node]*managed.Node{}
	model.SetGraphParam(x.Graph(), masksParam, all)
	return all
}

// MaskOf says which places of a sequence [batch, places, …] count: bool [batch, places], or nil if all do. An Embedding
// with a Padding makes the mask, or [Masked]; a layer of this package, and one's own in a [Sequential], [Named] or
// [Residual], hands it on where its output has the batch and the places of its input and at least three axes. Any
// other output has none. Recurrences, attention, [GlobalMeanPool], the losses and the metrics leave out the places that
// do not count.
//
// Nodes that a [Functional] makes of others by itself have no mask: give them one by [Masked].
func MaskOf(x *managed.Node) *managed.Node { return masks(x)[x] }

// Masked is a sequence with a mask, in place of that which it may have ([MaskOf]): lengths, whole numbers [batch], or
// bool [batch, places]; nil for none.
func Masked(x, mask *managed.Node) *managed.Node {
	if x.Rank() < 2 {
		panic(fmt.Errorf("Masked: the input is %s, expected [batch, places, …]", x.Shape()))
	}
	if mask != nil {
		mask = nn.PlacesMask(mask, x.Shape().Dimensions[0], x.Shape().Dimensions[1])
	}
	y := graph.IdentityWithCustomGradient(x, func(_, v *managed.Node) *managed.Node { return v }) // Identity has none
	masks(x)[y] = mask
	return y
}

// handOn gives an output the mask of the input, unless it has one of its own, or other places.
func handOn(x, y *managed.Node) {
	all := masks(x)
	mask := all[x]
	if _, own := all[y]; own || mask == nil || y.Rank() < 3 || mask.Shape().CheckDims(y.Shape().Dimensions[:2]...) != nil {
		return
	}
	all[y] = mask
}
