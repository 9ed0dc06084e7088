package managed

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
)

// CrossEntropy is the mean softmax cross-entropy between integer labels [batch] and logits [batch, classes], in nats.
// Labels outside of 0…classes-1 count as probability 1.
func CrossEntropy(labels, logits *Node) *Node {
	checkClasses("CrossEntropy", labels, logits)
	classes := logits.Shape().Dimensions[1]
	picked := graph.OneHot(labels, classes, logits.DType())
	return graph.Neg(graph.ReduceAllMean(graph.ReduceSum(graph.Mul(picked, graph.LogSoftmax(logits)), -1)))
}

// Accuracy is the share of examples whose largest logit [batch, classes] is at the label [batch].
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
	if !l.DType.IsInt() || l.Rank() != 1 || p.Rank() != 2 || l.Dimensions[0] != p.Dimensions[0] {
		panic(fmt.Errorf("%s: expected integer labels [batch] and logits [batch, classes], got labels %s and logits %s", what, l, p))
	}
}
