package losses

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// SampledSoftmax is the cross-entropy, [batch], in nats, of each query [batch, n] and its candidate against all
// candidates [batch+k, n], the first of which belong to the queries, in order. With k of 0 the negatives are those of
// the other queries. The logits are dot products minus odds, [batch+k], the logarithms of the candidates' chances to be
// sampled, as in TensorFlow's sampled_softmax_loss; nil if all are equal. A candidate of the odds +Inf does not
// count. ids, integers [batch+k], leave out negatives with the own candidate's id; nil for none.
func SampledSoftmax(queries, candidates, odds, ids *graph.Node) *graph.Node {
	q, c := queries.Shape(), candidates.Shape()
	if q.Rank() != 2 || c.Rank() != 2 || !q.DType.IsFloat() || q.DType != c.DType || q.Dimensions[1] != c.Dimensions[1] ||
		c.Dimensions[0] < max(2, q.Dimensions[0]) {
		panic(fmt.Errorf("SampledSoftmax: queries %s and candidates %s: expected floats [batch, n] and [batch+k, n], and two candidates or more", q, c))
	}
	batch, all := q.Dimensions[0], c.Dimensions[0]
	logits := graph.DotGeneral(queries, []int{1}, nil, candidates, []int{1}, nil)
	if odds != nil {
		if odds.Shape().CheckDims(all) != nil || !odds.DType().IsFloat() {
			panic(fmt.Errorf("SampledSoftmax: the odds are %s, expected floats [%d], one for each candidate", odds.Shape(), all))
		}
		odds = graph.StopGradient(graph.ConvertDType(odds, q.DType))
		logits = graph.Sub(logits, graph.BroadcastToDims(graph.ExpandAxes(odds, 0), batch, all))
	}
	g := queries.Graph()
	if ids != nil {
		if ids.Shape().CheckDims(all) != nil || !ids.DType().IsInt() {
			panic(fmt.Errorf("SampledSoftmax: the ids are %s, expected integers [%d], one for each candidate", ids.Shape(), all))
		}
		own := graph.ExpandAxes(graph.Slice(ids, graph.AxisRange(0, batch)), -1)
		same := graph.Equal(graph.BroadcastToDims(own, batch, all), graph.BroadcastToDims(graph.ExpandAxes(ids, 0), batch, all))
		square := shapes.Make(dtypes.Int32, batch, all)
		same = graph.LogicalAnd(same, graph.NotEqual(graph.Iota(g, square, 0), graph.Iota(g, square, 1)))
		logits = graph.Where(same, graph.Infinity(g, q.DType, -1), logits)
	}
	return CrossEntropy(graph.Iota(g, shapes.Make(dtypes.Int32, batch), 0), logits)
}
