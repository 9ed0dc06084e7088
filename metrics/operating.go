package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// BestAt is the best value of one rate of a binary classifier over all thresholds at which another rate is at least
// the given value, else 0. The rates are "precision", "recall" (sensitivity) and "specificity". BestAt("precision",
// "recall", 0.5, 200) is Keras's PrecisionAtRecall(0.5). Class 1 is above the threshold. Inputs, thresholds and NaN
// are as in [AUC].
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
		none := graph.Zeros(ones.Graph(), shapes.Make(dtype, 1))
		above := func(bins *graph.Node) *graph.Node { return graph.Concatenate([]*graph.Node{atLeast(bins), none}, 0) }
		hits, misses, allOnes, allZeros := above(ones), above(zeros), graph.ReduceAllSum(ones), graph.ReduceAllSum(zeros)
		reached := graph.GreaterOrEqual(condition.of(hits, misses, allOnes, allZeros), graph.Scalar(ones.Graph(), dtype, least))
		values := wanted.of(hits, misses, allOnes, allZeros)
		best := graph.ReduceAllMax(graph.Where(reached, values, graph.ZerosLike(values)))
		enough := allOnes
		if wanted.zeros || condition.zeros {
			enough = graph.Mul(allOnes, allZeros)
		}
		// NaN counts make this NaN.
		return graph.Where(graph.GreaterThan(enough, graph.ScalarZero(ones.Graph(), dtype)), best, nan(ones.Graph()))
	})
}

type rate struct {
	of    func(hits, misses, ones, zeros *graph.Node) *graph.Node
	zeros bool
}

var rates = map[string]rate{
	"precision":   {of: func(hits, misses, _, _ *graph.Node) *graph.Node { return ratio(hits, graph.Add(hits, misses)) }},
	"recall":      {of: func(hits, _, ones, _ *graph.Node) *graph.Node { return graph.Div(hits, ones) }},
	"specificity": {of: func(_, misses, _, zeros *graph.Node) *graph.Node { return graph.Div(graph.Sub(zeros, misses), zeros) }, zeros: true},
}
