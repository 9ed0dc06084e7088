package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// AUC is the area under the ROC curve: the probability that an example with label 1 has a higher prediction than one
// with label 0; ties count half. Its inputs are labels, 0 or 1 of any dtype, and predictions, probabilities in [0,
// 1], of one shape. Each element is an example.
//
// The thresholds are evenly spaced in [0, 1]. Predictions between two adjacent ones count as ties: the error is at
// most half the share of such pairs. AUC is NaN if a label is not 0 or 1, a prediction is outside [0, 1] or NaN, or a
// label has no examples.
func AUC(thresholds int) Metric {
	return newCurve("AUC", thresholds, func(ones, zeros *graph.Node) *graph.Node {
		pairs := graph.Mul(zeros, graph.Sub(atLeast(ones), graph.DivScalar(ones, 2)))
		return graph.Div(graph.ReduceAllSum(pairs), graph.Mul(graph.ReduceAllSum(ones), graph.ReduceAllSum(zeros)))
	})
}

// AveragePrecision is the area under the precision-recall curve: the sum of precision times the increase of recall.
// Inputs, thresholds and NaN are as in [AUC], but label 0 needs no examples.
func AveragePrecision(thresholds int) Metric {
	return newCurve("AveragePrecision", thresholds, func(ones, zeros *graph.Node) *graph.Node {
		hits := atLeast(ones)
		precision := ratio(hits, graph.Add(hits, atLeast(zeros)))
		return graph.Div(graph.ReduceAllSum(graph.Mul(ones, precision)), graph.ReduceAllSum(ones))
	})
}

// newCurve is a metric of the counts of labels 1 and 0 between adjacent thresholds; the first bin has predictions of 0.
func newCurve(name string, thresholds int, value func(ones, zeros *graph.Node) *graph.Node) Metric {
	name = fmt.Sprintf("%s(%d)", name, thresholds)
	bins := shapes.Make(dtype, max(thresholds, 1))
	return &sums{name: name, inputs: []string{"labels", "predictions"},
		keeps: []Accumulator{{Name: "ones", Shape: bins}, {Name: "zeros", Shape: bins}},
		batch: func(weights *graph.Node, in []*graph.Node) []*graph.Node {
			labels, p := in[0], graph.ConvertDType(in[1], dtype)
			if thresholds < 2 || !in[1].DType().IsFloat() || !labels.Shape().EqualDimensions(p.Shape()) {
				panic(fmt.Errorf("metrics: %s: expected at least 2 thresholds, and labels and floating-point predictions of the same dimensions, "+
					"got labels %s and predictions %s", name, labels.Shape(), in[1].Shape()))
			}
			labels = graph.ConvertDType(labels, dtype)
			zero, one := graph.ZerosLike(p), graph.OnesLike(p)
			isOne := graph.Equal(labels, one)
			isLabel := graph.LogicalOr(isOne, graph.Equal(labels, zero))
			inside := graph.LogicalAnd(graph.GreaterOrEqual(p, zero), graph.LessOrEqual(p, one))
			bin := graph.Ceil(graph.MulScalar(graph.Where(inside, p, zero), thresholds-1))
			bin = graph.ConvertDType(bin, classType)
			w, invalid := weigh(name, weights, p), graph.LogicalNot(graph.LogicalAnd(isLabel, inside))
			bad := poison(w, invalid)
			return []*graph.Node{
				graph.Add(tally(bin, graph.Where(isOne, w, zero), invalid, thresholds), bad),
				graph.Add(tally(bin, graph.Where(isOne, zero, w), invalid, thresholds), bad),
			}
		},
		value: func(acc []*graph.Node) []Value { return single(value(acc[0], acc[1])) }}
}

func atLeast(bins *graph.Node) *graph.Node {
	n := bins.Shape().Dimensions[0]
	for far := 1; far < n; far *= 2 {
		none := graph.Zeros(bins.Graph(), shapes.Make(dtype, far))
		bins = graph.Add(bins, graph.Concatenate([]*graph.Node{graph.Slice(bins, graph.AxisRangeToEnd(far)), none}, 0))
	}
	return bins
}
