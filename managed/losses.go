package managed

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// CrossEntropy is the mean over all labels of their softmax cross-entropy, see [CrossEntropies].
func CrossEntropy(labels, logits *Node) *Node {
	checkClasses("CrossEntropy", labels, logits)
	return graph.ReduceAllMean(CrossEntropies(labels, logits))
}

// CrossEntropies are the softmax cross-entropies, in nats, between integer labels [batch, …] and logits [batch, …,
// classes]: one for each label, of the labels' shape. Labels outside of 0…classes-1 count as probability 1: theirs is
// 0. [MaskedMean] makes a loss of those that count.
func CrossEntropies(labels, logits *Node) *Node {
	checkClasses("CrossEntropies", labels, logits)
	classes := logits.Shape().Dimensions[logits.Rank()-1]
	own := graph.OneHot(labels, classes, logits.DType())
	return graph.Neg(graph.ReduceSum(graph.Mul(own, graph.LogSoftmax(logits)), -1))
}

// MaskedMean is the mean of the values at which a mask of the same dimensions is true, or 0 if it is true at none. A
// mask of numbers weighs them: it is the sum of the products divided by the sum of the mask, or by 1 where that is
// less. Where the mask is 0 a value may be anything, also a NaN.
//
//	b.Loss("loss", managed.MaskedMean(managed.CrossEntropies(labels, logits), mask)) // [batch, time]
func MaskedMean(values, mask *Node) *Node {
	v, m := values.Shape(), mask.Shape()
	if !v.DType.IsFloat() || !v.EqualDimensions(m) {
		panic(fmt.Errorf("MaskedMean: expected floating-point values and a mask of their dimensions, got values %s and mask %s", v, m))
	}
	weights := graph.ConvertDType(mask, v.DType)
	values = graph.Where(graph.NotEqual(weights, graph.ZerosLike(weights)), values, graph.ZerosLike(values))
	return graph.Div(graph.ReduceAllSum(graph.Mul(values, weights)), graph.MaxScalar(graph.ReduceAllSum(weights), 1))
}

// Accuracy is the share of labels [batch, …] at which the largest of the logits [batch, …, classes] is.
func Accuracy(labels, logits *Node) *Node {
	checkClasses("Accuracy", labels, logits)
	hit := graph.Equal(graph.ArgMax(logits, -1, labels.DType()), labels)
	return graph.ReduceAllMean(graph.ConvertDType(hit, dtypes.Float32))
}

// MeanSquaredError is the mean of the squared differences of two nodes of one shape.
func MeanSquaredError(target, predicted *Node) *Node {
	if !target.Shape().Equal(predicted.Shape()) {
		panic(fmt.Errorf("MeanSquaredError: target %s and prediction %s must have one shape and dtype (see graph.Reshape, graph.ConvertDType)", target.Shape(), predicted.Shape()))
	}
	return graph.ReduceAllMean(graph.Square(graph.Sub(predicted, target)))
}

func checkClasses(what string, labels, logits *Node) {
	l, p := labels.Shape(), logits.Shape()
	if !l.DType.IsInt() || l.Rank() < 1 || p.Rank() != l.Rank()+1 || !slices.Equal(l.Dimensions, p.Dimensions[:l.Rank()]) {
		panic(fmt.Errorf("%s: expected integer labels [batch, …] and logits [batch, …, classes], got labels %s and logits %s", what, l, p))
	}
	if p.Dimensions[l.Rank()] < 2 {
		panic(fmt.Errorf("%s: the logits %s have one class, whose probability is always 1: expected two or more; of one logit take the cross-entropy of a sigmoid", what, p))
	}
}
