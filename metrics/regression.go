package metrics

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// MeanSquaredError is the weighted mean squared difference of targets and predictions, its two inputs, of one shape.
// Each element is an example.
func MeanSquaredError() Metric { return squaredError("MeanSquaredError", nil) }

// RootMeanSquaredError is the square root of [MeanSquaredError].
func RootMeanSquaredError() Metric { return squaredError("RootMeanSquaredError", graph.Sqrt) }

func squaredError(name string, after func(*graph.Node) *graph.Node) Metric {
	return newMean(name, func(in []*graph.Node) *graph.Node { return graph.Square(difference(name, in)) }, after, "targets", "predictions")
}

// MeanAbsoluteError is the weighted mean absolute difference; its inputs are as in [MeanSquaredError].
func MeanAbsoluteError() Metric {
	const name = "MeanAbsoluteError"
	return newMean(name, func(in []*graph.Node) *graph.Node { return graph.Abs(difference(name, in)) }, nil, "targets", "predictions")
}

// CosineSimilarity is the weighted mean cosine of the angle between targets and predictions, its two inputs, both
// [batch, …, n] with n >= 2. Each vector along the last axis is an example. The cosine with a zero vector is 0.
func CosineSimilarity() Metric {
	const name = "CosineSimilarity"
	return newMean(name, func(in []*graph.Node) *graph.Node {
		a, b := pair(name, in)
		if a.Rank() < 2 || a.Shape().Dim(-1) < 2 {
			panic(fmt.Errorf("metrics: %s: the predictions %s have one number an example, whose cosine is 1 or -1 whatever its size: "+
				"expected vectors [batch, …, n], with n of two or more", name, in[1].Shape()))
		}
		dot := func(x, y *graph.Node) *graph.Node { return graph.ReduceSum(graph.Mul(x, y), -1) }
		return ratio(dot(a, b), graph.Mul(graph.Sqrt(dot(a, a)), graph.Sqrt(dot(b, b))))
	}, nil, "targets", "predictions")
}

func pair(name string, inputs []*graph.Node) (targets, predictions *graph.Node) {
	take(name, inputs, "targets", "predictions")
	t, p := inputs[0], inputs[1]
	if !t.Shape().EqualDimensions(p.Shape()) {
		panic(fmt.Errorf("metrics: %s: targets %s and predictions %s must have the same dimensions", name, t.Shape(), p.Shape()))
	}
	return graph.ConvertDType(t, dtype), graph.ConvertDType(p, dtype)
}

func difference(name string, inputs []*graph.Node) *graph.Node {
	targets, predictions := pair(name, inputs)
	return graph.Sub(predictions, targets)
}
