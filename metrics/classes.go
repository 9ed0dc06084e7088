package metrics

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// classType has no overflow into the valid range.
const classType = dtypes.Int64

const noClass = -1

// Threshold makes binary classes: 1 if x > threshold, else 0, of x's shape. NaN becomes an invalid class.
func Threshold(x *graph.Node, threshold float64) *graph.Node {
	above := graph.GreaterThan(graph.ConvertDType(x, dtype), graph.Scalar(x.Graph(), dtype, threshold))
	return orNoClass(x, graph.ConvertDType(above, classType))
}

// Highest makes binary classes from scores [examples…, classes]: 1 for the k highest of an example, else 0, as
// integers of their shape. Of equal scores the first are taken. With a NaN, all classes of the example are invalid.
func Highest(scores *graph.Node, k int) *graph.Node {
	s := scores.Shape()
	if !s.DType.IsFloat() || s.Rank() == 0 || k < 1 || k > s.Dimensions[s.Rank()-1] {
		panic(fmt.Errorf("metrics: Highest(%d): expected scores, floats [examples…, classes], and a number from 1 to that of the classes, got %s", k, s))
	}
	highest := graph.ConvertDType(graph.TopKMask(scores, k, -1), classType)
	broken := graph.BroadcastToDims(graph.ExpandAxes(graph.LogicalAny(graph.IsNaN(scores), -1), -1), s.Dimensions...)
	return graph.Where(broken, graph.FillScalar(scores.Graph(), highest.Shape(), noClass), highest)
}

func orNoClass(x, class *graph.Node) *graph.Node {
	if !x.DType().IsFloat() {
		return class
	}
	return graph.Where(graph.IsNaN(x), graph.FillScalar(x.Graph(), class.Shape(), noClass), class)
}

func classes(name string, inputs []*graph.Node) (labels, predictions *graph.Node, known int) {
	take(name, inputs, "labels", "predictions")
	labels, n := classOf(name, "labels", inputs[0])
	predictions, m := classOf(name, "predictions", inputs[1])
	if n > 0 && m > 0 && n != m || !labels.Shape().Equal(predictions.Shape()) {
		panic(fmt.Errorf("metrics: %s: labels %s and predictions %s do not fit: expected integers with a class for each example, or floats with "+
			"one more axis, the classes", name, inputs[0].Shape(), inputs[1].Shape()))
	}
	return labels, predictions, max(n, m)
}

func classOf(name, what string, x *graph.Node) (class *graph.Node, classes int) {
	switch s := x.Shape(); {
	case s.DType.IsInt():
		return graph.ConvertDType(x, classType), 0
	case s.DType.IsFloat() && s.Rank() > 0 && s.Dimensions[s.Rank()-1] < 2:
		panic(fmt.Errorf("metrics: %s: %s %s are scores of one class, to which all examples would belong: expected two or more; Threshold makes two "+
			"classes of one score", name, what, s))
	case s.DType.IsFloat() && s.Rank() > 0:
		broken := graph.LogicalAny(graph.IsNaN(x), -1)
		class = graph.ArgMax(x, -1, classType)
		return graph.Where(broken, graph.FillScalar(x.Graph(), class.Shape(), noClass), class), s.Dimensions[s.Rank()-1]
	default:
		panic(fmt.Errorf("metrics: %s: %s %s are not classes: expected integers, or floats whose last axis is the classes; Threshold makes "+
			"classes of probabilities and of truth values", name, what, s))
	}
}

func outside(class *graph.Node, n int) *graph.Node {
	bad := graph.LessThan(class, graph.ScalarZero(class.Graph(), class.DType()))
	if n == 0 {
		return bad
	}
	return graph.LogicalOr(bad, graph.GreaterOrEqual(class, graph.Scalar(class.Graph(), class.DType(), n)))
}

func is(class *graph.Node, n int) *graph.Node {
	return graph.ConvertDType(graph.OneHot(class, n, dtype), dtypes.Bool)
}

// ConfusionMatrix is the weight of the examples per label and prediction: [classes, classes], rows are labels, columns
// predictions. Without examples it is 0.
func ConfusionMatrix(classes int) Metric {
	name := fmt.Sprintf("ConfusionMatrix(%d)", classes)
	return &sums{name: name, inputs: []string{"labels", "predictions"},
		keeps: []Accumulator{{Name: "matrix", Shape: shapes.Make(dtype, max(classes, 1), max(classes, 1))}},
		batch: func(weights *graph.Node, in []*graph.Node) []*graph.Node {
			labels, predictions, w, invalid := classified(name, classes, weights, in)
			cell := graph.Add(graph.MulScalar(labels, classes), predictions)
			cells := graph.Reshape(tally(cell, w, invalid, classes*classes), classes, classes)
			return []*graph.Node{graph.Add(cells, poison(w, invalid))}
		},
		value: func(acc []*graph.Node) []Value { return single(acc[0]) }}
}

func classified(name string, n int, weights *graph.Node, in []*graph.Node) (labels, predictions, w, invalid *graph.Node) {
	labels, predictions, known := classes(name, in)
	if n < 2 || known > 0 && known != n {
		panic(fmt.Errorf("metrics: %s: expected at least 2 classes, and the same number in scores, got labels %s and predictions %s", name, in[0].Shape(), in[1].Shape()))
	}
	return labels, predictions, weigh(name, weights, labels), graph.LogicalOr(outside(labels, n), outside(predictions, n))
}
