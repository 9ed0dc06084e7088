package metrics

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// The four metrics here say how good one side of a classifier of two can be if a threshold is chosen for the other
// side: the best value of the one over all thresholds at which the other is at least so much, and 0 if there is none.
// Inputs, thresholds and NaN are those of [AUC]; an example counts as a 1 where its prediction is above the
// threshold.

// PrecisionAtRecall is the greatest precision with a recall of at least so much.
func PrecisionAtRecall(recall float64, thresholds int) Metric {
	return newOperating("PrecisionAtRecall", recall, thresholds, precisionAt, recallAt)
}

// RecallAtPrecision is the greatest recall with a precision of at least so much.
func RecallAtPrecision(precision float64, thresholds int) Metric {
	return newOperating("RecallAtPrecision", precision, thresholds, recallAt, precisionAt)
}

// SensitivityAtSpecificity is the greatest recall with a specificity of at least so much.
func SensitivityAtSpecificity(specificity float64, thresholds int) Metric {
	return newOperating("SensitivityAtSpecificity", specificity, thresholds, recallAt, specificityAt)
}

// SpecificityAtSensitivity is the greatest specificity with a recall of at least so much.
func SpecificityAtSensitivity(sensitivity float64, thresholds int) Metric {
	return newOperating("SpecificityAtSensitivity", sensitivity, thresholds, specificityAt, recallAt)
}

// rate is a figure at each threshold from how much of label 1 and of label 0 is above it, of how much there is.
type rate struct {
	of func(hits, misses, ones, zeros *graph.Node) *graph.Node
	// zeros: without an example of label 0 it says nothing.
	zeros bool
}

var (
	precisionAt   = rate{of: func(hits, misses, _, _ *graph.Node) *graph.Node { return ratio(hits, graph.Add(hits, misses)) }}
	recallAt      = rate{of: func(hits, _, ones, _ *graph.Node) *graph.Node { return graph.Div(hits, ones) }}
	specificityAt = rate{of: func(_, misses, _, zeros *graph.Node) *graph.Node { return graph.Div(graph.Sub(zeros, misses), zeros) }, zeros: true}
)

func newOperating(name string, least float64, thresholds int, wanted, condition rate) Metric {
	name = fmt.Sprintf("%s(%g)", name, least)
	return newCurve(name, thresholds, func(ones, zeros *graph.Node) *graph.Node {
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
