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

// expanded has axes of 1 behind its own, up to the rank of another node.
func expanded(v, like *managed.Node) *managed.Node {
	for v.Rank() < like.Rank() {
		v = graph.ExpandAxes(v, -1)
	}
	return v
}

// counted has 0 for the places that do not count, and each of the others as its share of the batch's mean over those
// that do, so that the mean over the places of all examples is that one; it is 0 if there are none. Examples that are
// padding are left out, if there is a mask of them.
func counted(name string, v, places, examples *managed.Node) *managed.Node {
	if places == nil {
		return v
	}
	if v.Rank() < places.Rank() || places.Shape().CheckDims(v.Shape().Dimensions[:places.Rank()]...) != nil {
		panic(fmt.Errorf("loss %q gives %s for an output with the mask %s: expected a value for each place, [batch, places, …]; "+
			"a loss that leaves out places by itself is for an output without a mask: Masked(output, nil)", name, v.Shape(), places.Shape()))
	}
	wide := func(mask *managed.Node) *managed.Node {
		return graph.BroadcastToDims(expanded(mask, v), v.Shape().Dimensions...)
	}
	number := func(mask *managed.Node) *managed.Node { return graph.ReduceAllSum(graph.ConvertDType(mask, v.DType())) }
	counts, all := wide(places), graph.OnesLike(v)
	if examples != nil {
		all = wide(examples)
	}
	share := graph.Div(number(all), graph.MaxScalar(number(wide(both(places, examples))), 1))
	return graph.Mul(graph.Where(counts, v, graph.ZerosLike(v)), share)
}

// both is where two masks are true, of which one may have more axes, or be nil.
func both(a, b *managed.Node) *managed.Node {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.Rank() < b.Rank():
		a, b = b, a
	}
	return graph.LogicalAnd(a, graph.BroadcastToDims(expanded(b, a), a.Shape().Dimensions...))
}
