package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Average selects how the scores of classes are combined.
type Average int

const (
	// Macro is the mean over all classes.
	Macro Average = iota
	// Micro sums the counts of all classes before computing the score.
	Micro
	// Weighted is the mean over all classes, weighted by the number of examples with the label.
	Weighted
	// Binary is the score of class 1 of two.
	Binary
	// PerClass does not combine them: the value is an array [classes].
	PerClass
)

func (a Average) String() string {
	if names := []string{"macro", "micro", "weighted", "binary", "per class"}; a >= 0 && int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("Average(%d)", int(a))
}

// Precision is the share of the examples predicted as a class that have its label. A class that is never predicted has
// 0.
func Precision(classes int, average Average) Metric {
	return newScores("Precision", classes, average, precision)
}

// Recall is the share of the examples of a class that are predicted as it. A class without examples has 0.
func Recall(classes int, average Average) Metric {
	return newScores("Recall", classes, average, recall)
}

// Specificity is the share of the examples not of a class that are not predicted as it. A class with all examples has
// 0.
func Specificity(classes int, average Average) Metric {
	return newScores("Specificity", classes, average, specificity)
}

// ClassScores has the values "precision", "recall", "f1" and "specificity": see [Precision], [Recall], [FBeta],
// [Specificity].
func ClassScores(classes int, average Average) Metric {
	return newScores("ClassScores", classes, average, precision, recall, f1, specificity)
}

type score struct {
	name string
	of   func(hit, predicted, labelled, all *graph.Node) *graph.Node
}

var (
	precision = score{"precision", func(hit, predicted, _, _ *graph.Node) *graph.Node { return ratio(hit, predicted) }}
	recall    = score{"recall", func(hit, _, labelled, _ *graph.Node) *graph.Node { return ratio(hit, labelled) }}
	f1        = score{"f1", func(hit, predicted, labelled, _ *graph.Node) *graph.Node {
		return ratio(graph.MulScalar(hit, 2), graph.Add(predicted, labelled))
	}}
	specificity = score{"specificity", func(hit, predicted, labelled, all *graph.Node) *graph.Node {
		rest := graph.Sub(all, labelled)
		return ratio(graph.Sub(rest, graph.Sub(predicted, hit)), rest)
	}}
)

func newScores(name string, n int, average Average, scores ...score) Metric {
	name = fmt.Sprintf("%s(%d, %s)", name, n, average)
	each := shapes.Make(dtype, max(n, 1))
	return &sums{name: name, inputs: []string{"labels", "predictions"},
		keeps: []Accumulator{{Name: "hit", Shape: each}, {Name: "predicted", Shape: each}, {Name: "labelled", Shape: each}},
		batch: func(weights *graph.Node, in []*graph.Node) []*graph.Node {
			if average < Macro || average > PerClass || average == Binary && n != 2 {
				panic(fmt.Errorf("metrics: %s: unknown average over %d classes", name, n))
			}
			labels, predictions, w, invalid := classified(name, n, weights, in)
			bad := poison(w, invalid)
			hit := graph.Where(graph.Equal(labels, predictions), w, graph.ZerosLike(w))
			return []*graph.Node{
				graph.Add(tally(labels, hit, invalid, n), bad),
				graph.Add(tally(predictions, w, invalid, n), bad),
				graph.Add(tally(labels, w, invalid, n), bad),
			}
		},
		value: func(acc []*graph.Node) []Value { return average.values(scores, acc, graph.ReduceAllSum(acc[2])) },
		multiLabel: &sums{name: "MultiLabel(" + name + ")", inputs: []string{"labels", "predictions"},
			keeps: []Accumulator{{Name: "hit", Shape: each}, {Name: "predicted", Shape: each}, {Name: "labelled", Shape: each}, {Name: "all", Shape: shapes.Make(dtype)}},
			batch: func(weights *graph.Node, in []*graph.Node) []*graph.Node {
				return labelled(name, n, average, weights, in[0], in[1])
			},
			value: func(acc []*graph.Node) []Value { return average.values(scores, acc, acc[3]) }}}
}

// MultiLabel makes a metric of scores, [IoU] or [MeanIoU] one of examples with any number of classes. Its inputs are
// labels and predictions as integers [examples…, classes], 1 for the example's classes, else 0. Weights are per
// example.
func MultiLabel(m Metric) Metric {
	if s, ok := m.(*sums); ok && s.multiLabel != nil {
		return s.multiLabel
	}
	return &sums{name: "MultiLabel", inputs: []string{"labels", "predictions"}, batch: func(*graph.Node, []*graph.Node) []*graph.Node {
		panic(fmt.Errorf("metrics: MultiLabel: %T is not a metric that scores classes: expected Precision, Recall, FBeta, Specificity, ClassScores, IoU or MeanIoU", m))
	}}
}

func labelled(name string, n int, average Average, weights, labels, predictions *graph.Node) []*graph.Node {
	l, p := labels.Shape(), predictions.Shape()
	if !l.DType.IsInt() || !p.DType.IsInt() || !l.EqualDimensions(p) || l.Rank() == 0 || l.Dimensions[l.Rank()-1] != n || average == Binary {
		panic(fmt.Errorf("metrics: MultiLabel(%s): labels %s and predictions %s do not fit: expected integers 0 and 1, both [examples…, %d classes], and an "+
			"average that is not binary", name, l, p, n))
	}
	labels, predictions = graph.ConvertDType(labels, classType), graph.ConvertDType(predictions, classType)
	invalid := graph.LogicalAny(graph.LogicalOr(outside(labels, 2), outside(predictions, 2)), -1)
	each := weigh(name, weights, invalid)
	w := graph.BroadcastToDims(graph.ExpandAxes(each, -1), l.Dimensions...)
	one := graph.OnesLike(labels)
	is, says := graph.Equal(labels, one), graph.Equal(predictions, one)
	bad := poison(each, invalid)
	count := func(where *graph.Node) *graph.Node {
		counted := graph.Where(where, w, graph.ZerosLike(w))
		return graph.Add(graph.ReduceSum(graph.Reshape(counted, -1, n), 0), bad)
	}
	return []*graph.Node{count(graph.LogicalAnd(is, says)), count(says), count(is), graph.ReduceAllSum(each)}
}

func (a Average) values(scores []score, acc []*graph.Node, all *graph.Node) []Value {
	values := make([]Value, len(scores))
	for i, s := range scores {
		values[i] = Value{s.name, a.of(s, acc[0], acc[1], acc[2], all)}
	}
	if len(values) == 1 {
		values[0].Name = ""
	}
	return values
}

func (a Average) of(s score, hit, predicted, labelled, all *graph.Node) *graph.Node {
	g := hit.Graph()
	each := s.of(hit, predicted, labelled, graph.BroadcastToShape(all, labelled.Shape()))
	v := each
	switch a {
	case Macro:
		v = graph.ReduceAllMean(each)
	case Micro:
		sum := graph.ReduceAllSum
		v = s.of(sum(hit), sum(predicted), sum(labelled), graph.MulScalar(all, hit.Shape().Size()))
	case Weighted:
		v = ratio(graph.ReduceAllSum(graph.Mul(each, labelled)), graph.ReduceAllSum(labelled))
	case Binary:
		v = graph.Reshape(graph.Slice(each, graph.AxisElem(1)))
	}
	none := graph.Equal(all, graph.ScalarZero(g, dtype))
	return graph.Where(none, graph.BroadcastToShape(nan(g), v.Shape()), v)
}
