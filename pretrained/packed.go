package pretrained

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/layering"
)

const segmentsInput = "segment_ids"

// Packed encodes texts as [Base.Set], several into each row of a number of places, for [Base.CausalLM]. Instead of
// attention_mask it has segment_ids, the number of each token's text in its row, from 1, and 0 at padding. The labels y
// are the next tokens, and -100 at the last of each text and at padding, for the loss
// masked_sparse_categorical_crossentropy. Other labels are packed by data.PackSequences.
//
// A text is computed as alone, up to rounding: it attends only to itself, and learned positions begin at 0. Other
// networks refuse segment_ids.
func (b *Base) Packed(texts []text.Input, places int) (*data.Set, error) {
	set, err := b.packed(texts, places)
	if err != nil {
		return nil, fmt.Errorf("pretrained: packed texts for %s: %w", b.folder, err)
	}
	return set, nil
}

func (b *Base) packed(texts []text.Input, places int) (*data.Set, error) {
	e, err := b.tokenize(texts)
	if err != nil {
		return nil, err
	}
	f, err := b.describe(1)
	if err != nil {
		return nil, err
	}
	labels := make([][]int32, len(e.ids))
	for i, ids := range e.ids {
		if f.places > 0 && len(ids) > f.places {
			return nil, fmt.Errorf("text %d has %d tokens, the model has positions for %d: expected a Most of the input", i, len(ids), f.places)
		}
		labels[i] = append(slices.Clone(ids[1:]), -100)
	}
	ids, segments, err := data.PackSequences(e.ids, e.fill, places)
	if err != nil {
		return nil, err
	}
	next, _, err := data.PackSequences(labels, -100, places)
	if err != nil {
		return nil, err
	}
	return data.New(data.Field{Name: idsInput, Array: ids}, data.Field{Name: segmentsInput, Array: segments}, data.Field{Name: "y", Array: next})
}

func isPacked(x *graph.Node) bool {
	step := layering.StepOf(x)
	return step != nil && slices.Contains(step.Fields(), segmentsInput)
}

// texts returns the mask of ids, that of the keys that a place attends to, and for packed rows each place's number in
// its text.
func (in inputs) texts(ids *graph.Node) (mask, keys, numbers *graph.Node) {
	if !isPacked(ids) {
		mask = in.mask(ids)
		return mask, mask, nil
	}
	if slices.Contains(layering.StepOf(ids).Fields(), maskInput) {
		panic(errors.New("pretrained: the batch has the fields attention_mask and segment_ids, expected one of them: segment_ids is 0 at padding"))
	}
	of := in.ids(segmentsInput)
	if !of.Shape().EqualDimensions(ids.Shape()) {
		panic(fmt.Errorf("pretrained: the input %q is %s, expected the shape of %q, %s", segmentsInput, of.Shape(), idsInput, ids.Shape()))
	}
	batch, places := ids.Shape().Dimensions[0], ids.Shape().Dimensions[1]
	keys = graph.Equal(graph.BroadcastToDims(graph.ExpandAxes(of, 2), batch, places, places), graph.BroadcastToDims(graph.ExpandAxes(of, 1), batch, places, places))
	all := shapes.Make(dtypes.Int32, batch, places, places)
	earlier := graph.LogicalAnd(keys, graph.LessThan(graph.Iota(of.Graph(), all, 2), graph.Iota(of.Graph(), all, 1)))
	mask = graph.NotEqual(of, graph.ZerosLike(of))
	numbers = graph.ReduceSum(graph.ConvertDType(earlier, dtypes.Int32), 2)
	return mask, keys, graph.Where(mask, numbers, graph.ZerosLike(numbers)) // padding may be longer than a table
}

// position is NaN beyond its table.
func (e encoder) position(s *model.Scope, x, numbers *graph.Node) *graph.Node {
	y := graph.Add(x, e.embed(s, numbers, e.places, -1))
	fits := graph.LessThan(numbers, graph.Scalar(x.Graph(), numbers.DType(), e.places))
	dims := y.Shape().Dimensions
	return graph.Where(graph.BroadcastToDims(graph.ExpandAxes(fits, -1), dims...), y, graph.BroadcastToDims(graph.Scalar(x.Graph(), y.DType(), math.NaN()), dims...))
}
