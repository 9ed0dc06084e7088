package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// ConfusionMatrix is the weight of the examples of each label that were given each prediction: [classes, classes], row
// label, column prediction. Its inputs are labels and predictions: see the package's section on classes. Without any
// example it is 0.
func ConfusionMatrix(classes int) Metric {
	name := fmt.Sprintf("ConfusionMatrix(%d)", classes)
	return &sums{name: name, inputs: []string{"labels", "predictions"},
		keeps: []Accumulator{{Name: "matrix", Shape: shapes.Make(dtype, max(classes, 1), max(classes, 1))}},
		batch: func(weights *Node, in []*Node) []*Node {
			labels, predictions, w, invalid := classified(name, classes, weights, in)
			cell := graph.Add(graph.MulScalar(labels, classes), predictions)
			cells := graph.Reshape(tally(cell, w, invalid, classes*classes), classes, classes)
			return []*Node{graph.Add(cells, poison(w, invalid))}
		},
		value: func(acc []*Node) []Value { return single(acc[0]) }}
}

// classified reads labels and predictions of so many classes, with their weights, and tells which examples have none.
func classified(name string, n int, weights *Node, in []*Node) (labels, predictions, w, invalid *Node) {
	labels, predictions, known := classes(name, in)
	if n < 2 || known > 0 && known != n {
		panic(fmt.Errorf("metrics: %s: expected at least 2 classes, as many as scores have, got labels %s and predictions %s", name, in[0].Shape(), in[1].Shape()))
	}
	return labels, predictions, weigh(name, weights, labels), graph.LogicalOr(outside(labels, n), outside(predictions, n))
}
