package metrics

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Accuracy is the weighted share of examples whose predicted class is the label's.
func Accuracy() Metric {
	const name = "Accuracy"
	return newMean(name, func(in []*graph.Node) *graph.Node {
		labels, predictions, n := classes(name, in)
		hit := graph.ConvertDType(graph.Equal(labels, predictions), dtype)
		return orNaN(hit, graph.LogicalOr(outside(labels, n), outside(predictions, n)))
	}, nil, "labels", "predictions")
}

// TopK is the weighted share of examples in which fewer than k classes score higher than the label's: ties are
// correct. Its inputs are labels and scores.
func TopK(k int) Metric {
	name := fmt.Sprintf("TopK(%d)", k)
	return newMean(name, func(in []*graph.Node) *graph.Node {
		labels, predictions, n := classes(name, in)
		if k < 1 || !in[1].DType().IsFloat() {
			panic(fmt.Errorf("metrics: %s: expected k of at least 1 and predictions as scores, got k %d and predictions %s", name, k, in[1].Shape()))
		}
		scores := in[1]
		ofLabel := graph.ReduceSum(graph.Where(is(labels, n), scores, graph.ZerosLike(scores)), -1)
		greater := graph.GreaterThan(scores, graph.ExpandAxes(ofLabel, -1))
		before := graph.ReduceSum(graph.ConvertDType(greater, dtypes.Int32), -1)
		hit := graph.LessThan(before, graph.Scalar(before.Graph(), before.DType(), k))
		return orNaN(graph.ConvertDType(hit, dtype), graph.LogicalOr(outside(labels, n), outside(predictions, n)))
	}, nil, "labels", "predictions")
}

// CrossEntropy is the weighted mean softmax cross-entropy, in nats, of labels, integers [examples…] or probabilities
// [examples…, classes], and logits [examples…, classes].
func CrossEntropy() Metric { return crossEntropy("CrossEntropy", nil) }

// Perplexity is exp of [CrossEntropy]. Weights or a mask select the tokens.
func Perplexity() Metric { return crossEntropy("Perplexity", graph.Exp) }

func crossEntropy(name string, after func(*graph.Node) *graph.Node) Metric {
	return newMean(name, func(in []*graph.Node) *graph.Node {
		take(name, in, "labels", "logits")
		labels, logits := in[0], in[1]
		if !logits.DType().IsFloat() || logits.Rank() == 0 {
			panic(fmt.Errorf("metrics: %s: logits %s must be floats [examples…, classes]", name, logits.Shape()))
		}
		if logits.Shape().Dimensions[logits.Rank()-1] < 2 {
			panic(fmt.Errorf("metrics: %s: logits %s are of one class, whose probability is always 1: expected two or more", name, logits.Shape()))
		}
		if logits.DType() != dtype {
			logits = graph.ConvertDType(logits, dtypes.Float32) // 16 bits are too few for sums of exponentials
		}
		log := graph.LogSoftmax(logits)
		if labels.DType().IsFloat() {
			if !labels.Shape().EqualDimensions(logits.Shape()) {
				panic(fmt.Errorf("metrics: %s: labels %s as probabilities must have the dimensions of the logits %s", name, labels.Shape(), logits.Shape()))
			}
			p := graph.ConvertDType(labels, dtype)
			return graph.Neg(graph.ReduceSum(graph.Mul(p, counted(p, log)), -1)) // so that 0·log(0) is 0
		}
		class, _, n := classes(name, []*graph.Node{labels, logits})
		ofLabel := graph.ReduceSum(graph.Where(is(class, n), log, graph.ZerosLike(log)), -1)
		return orNaN(graph.Neg(ofLabel), outside(class, n))
	}, after, "labels", "logits")
}

func orNaN(x, invalid *graph.Node) *graph.Node {
	x = graph.ConvertDType(x, dtype)
	return graph.Where(invalid, graph.BroadcastToShape(nan(x.Graph()), x.Shape()), x)
}
