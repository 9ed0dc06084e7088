package metrics

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// IoU is the intersection over union of a class (Jaccard index): the examples labeled and predicted as the class,
// divided by those that are either. A class that is neither has 0.
func IoU(classes int, average Average) Metric { return newScores("IoU", classes, average, iou) }

// MeanIoU is the mean of [IoU] over the classes that are labeled or predicted.
func MeanIoU(classes int) Metric {
	s := newScores("MeanIoU", classes, PerClass, iou).(*sums)
	s.name = fmt.Sprintf("MeanIoU(%d)", classes)
	s.multiLabel.name = "MultiLabel(" + s.name + ")"
	s.value = func(acc []*graph.Node) []Value {
		each := iou.of(acc[0], acc[1], acc[2], nil)
		union := graph.Add(acc[1], acc[2])
		there := graph.ConvertDType(graph.NotEqual(union, graph.ZerosLike(union)), dtype)
		return single(graph.Div(graph.ReduceAllSum(each), graph.ReduceAllSum(there))) // NaN without examples
	}
	s.multiLabel.value = s.value
	return s
}

// FBeta is the weighted harmonic mean of [Precision] and [Recall] per class; recall has the weight beta² (van
// Rijsbergen 1979). F1 has beta 1. A class that is neither labeled nor predicted has 0.
func FBeta(beta float64, classes int, average Average) Metric {
	square := beta * beta
	f := score{"fbeta", func(hit, predicted, labelled, _ *graph.Node) *graph.Node {
		if !(beta > 0) {
			panic(fmt.Errorf("metrics: FBeta: beta is %g, expected a positive number", beta))
		}
		return ratio(graph.MulScalar(hit, 1+square), graph.Add(predicted, graph.MulScalar(labelled, square)))
	}}
	return newScores(fmt.Sprintf("FBeta(%g)", beta), classes, average, f)
}

var iou = score{"iou", func(hit, predicted, labelled, _ *graph.Node) *graph.Node {
	return ratio(hit, graph.Sub(graph.Add(predicted, labelled), hit))
}}
