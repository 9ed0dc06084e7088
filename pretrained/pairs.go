package pretrained

import (
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
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
)

const (
	positivePrefix = "positive_"
	negativePrefix = "negative_"
)

// Pairs is [Base.Set] with two or three texts per example, for [Network.Contrastive]: an anchor, like a question, a
// positive that belongs to it, and a negative that does not; negatives may be nil. The fields of positives are
// positive_input_ids, positive_attention_mask and positive_token_type_ids, and likewise negative_.
func (b *Base) Pairs(anchors, positives, negatives []text.Input, fields ...data.Field) (*data.Set, error) {
	examples, all := len(anchors), []data.Field(nil)
	add := func(what, prefix string, texts []text.Input) error {
		some, err := b.encoded(prefix, texts)
		if err == nil && len(texts) != examples {
			err = fmt.Errorf("there are %d, expected one for each of %d anchors", len(texts), examples)
		}
		if err != nil {
			return fmt.Errorf("pretrained: pairs of texts for %s: %s: %w", b.folder, what, err)
		}
		all = append(all, some...)
		return nil
	}
	if err := add("anchors", "", anchors); err != nil {
		return nil, err
	}
	if err := add("positives", positivePrefix, positives); err != nil {
		return nil, err
	}
	if negatives != nil {
		if err := add("negatives", negativePrefix, negatives); err != nil {
			return nil, err
		}
	}
	set, err := data.New(append(all, fields...)...)
	if err != nil {
		return nil, fmt.Errorf("pretrained: pairs of texts for %s: %w", b.folder, err)
	}
	return set, nil
}

// Contrastive returns a network of [Base.Embedder] that also reports a loss for sets of [Base.Pairs],
// sentence-transformers' MultipleNegativesRankingLoss (Henderson et al. 2017): the cross-entropy of scale·cosine of an
// anchor with its positive, against all positives and negatives of the batch. sentence-transformers' scale is 20.
//
//	network := base.Embedder().Contrastive(20)
//	model, err := flaxlike.New(ctx, network, flaxlike.WithInnerLosses())
//
// In a custom step, [Network.Outputs] reports it. Padding examples are neither examples nor negatives. Over several
// devices and ranks, the negatives are those of the whole batch; a batch of optim.Accumulate has only its own. Batches
// without positives, for embeddings, have no loss, and are an error in training.
func (n *Network) Contrastive(scale float64) *Network {
	with := *n
	switch {
	case n.err != nil:
	case n.task != bare || n.whole || n.sentences == nil:
		with.err = fmt.Errorf("pretrained: the network %s of %s: Contrastive: expected a network of Embedder", n.task, n.base.folder)
	case !(scale > 0) || scale > math.MaxFloat32:
		with.err = fmt.Errorf("pretrained: the network %s of %s: Contrastive: the scale is %v, expected a number above 0, such as 20", n.task, n.base.folder, scale)
	default:
		with.scale = scale
	}
	return &with
}

func (n *Network) contrast(s *model.Scope, in inputs, anchors *graph.Node) {
	step := layering.StepOf(anchors)
	has := func(prefix string) bool { return step != nil && slices.Contains(step.Fields(), prefix+idsInput) }
	if !has(positivePrefix) && (step == nil || !step.Training()) {
		return
	}
	var others []*graph.Node
	for _, prefix := range []string{positivePrefix, negativePrefix} {
		if prefix == negativePrefix && !has(prefix) {
			continue
		}
		s := s.ResetVisited()
		hidden := n.family.build(s, func(name string) *graph.Node { return in(prefix + name) })
		others = append(others, unit(wide(n.outputs(s, hidden)[embedding])))
	}
	batch := anchors.Shape().Dimensions[0]
	if batch*len(others) < 2 { // one candidate is always right
		managed.AddLoss("contrastive", graph.MulScalar(graph.ReduceAllSum(graph.Mul(anchors, others[0])), 0))
		return
	}
	scores := graph.MulScalar(graph.DotGeneral(unit(anchors), []int{1}, nil, graph.Concatenate(others, 0), []int{1}, nil), n.scale)
	square := shapes.Make(dtypes.Int32, scores.Shape().Dimensions...)
	row, column := graph.Iota(scores.Graph(), square, 0), graph.Iota(scores.Graph(), square, 1)
	if real := step.Examples(); real != nil {
		counts := graph.Concatenate(slices.Repeat([]*graph.Node{real}, len(others)), 0)
		seen := graph.LogicalOr(graph.Equal(row, column), graph.BroadcastToDims(graph.ExpandAxes(counts, 0), square.Dimensions...))
		scores = graph.Where(seen, scores, graph.BroadcastToDims(graph.Scalar(scores.Graph(), scores.DType(), -1e30), square.Dimensions...))
	}
	labels := graph.Iota(scores.Graph(), shapes.Make(dtypes.Int32, batch), 0)
	managed.AddLoss("contrastive", losses.CrossEntropy(labels, scores))
}
