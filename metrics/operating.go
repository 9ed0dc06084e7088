package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// BestAt is how good one side of a classifier of two can be if a threshold is chosen for the other side: the best
// value of the one over all thresholds at which the other is at least so much, and 0 if there is none. The sides are
// "precision", "recall", which is the sensitivity, and "specificity": BestAt("precision", "recall", 0.5, 200) is
// Keras's PrecisionAtRecall(0.5). Inputs, thresholds and NaN are those of [AUC]; an example counts as a 1 where its
// prediction is above the threshold.
func BestAt(best, at string, least float64, thresholds int) Metric {
	name := fmt.Sprintf("BestAt(%s, %s, %g)", best, at, least)
	return newCurve(name, thresholds, func(ones, zeros *graph.Node) *graph.Node {
		wanted, condition := rates[best], rates[at]
		if wanted.of == nil || condition.of == nil || best == at {
			panic(fmt.Errorf("metrics: %s: expected two of precision, recall and specificity", name))
		}
		if !(least >= 0 && least <= 1) {
			panic(fmt.Errorf("metrics: %s(%d): expected a share from 0 to 1", name, thresholds))
		}
		none := graph.Zeros(ones.Graph(), shapes.Make(dtype, 1)) // above the last threshold there is nothing
		above := func(bins *graph.Node) *graph.Node { return graph.Concatenate([]*graph.Node{atLeast(bins), none}, 0) }
		hits, misses, allOnes, allZeros := above(ones), above(zeros), graph.ReduceAllSum(ones), graph.ReduceAllSum(zeros)
		reached := graph.GreaterOrEqual(condition.of(hits, misses, allOnes, allZeros), graph.Scalar(ones.Graph(), dtype, least))
		values := wanted.of(hits, misses, allOnes, allZeros)
		best := graph.ReduceAllMax(graph.Where(reached, values, graph.ZerosLike(values)))
		enough := allOnes
		if wanted.zeros || condition.zeros {
			enough = graph.Mul(allOnes, allZeros)
		}
		// Also where the counts are NaN: a comparison with it is false.
		return graph.Where(graph.GreaterThan(enough, graph.ScalarZero(ones.Graph(), dtype)), best, nan(ones.Graph()))
	})
}

// rate is a figure at each threshold from how much of label 1 and of label 0 is above it, of how much there is.
type rate struct {
	of func(hits, misses, ones, zeros *graph.Node) *graph.Node
	// zeros: without an example of label 0 it says nothing.
	zeros bool
}

var rates = map[string]rate{
	"precision":   {of: func(hits, misses, _, _ *graph.Node) *graph.Node { return ratio(hits, graph.Add(hits, misses)) }},
	"recall":      {of: func(hits, _, ones, _ *graph.Node) *graph.Node { return graph.Div(hits, ones) }},
	"specificity": {of: func(_, misses, _, zeros *graph.Node) *graph.Node { return graph.Div(graph.Sub(zeros, misses), zeros) }, zeros: true},
}
