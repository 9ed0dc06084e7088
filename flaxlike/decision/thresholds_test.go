package decision_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike/decision"
)

// Each aim has the best of all thresholds. The bounds between equal probabilities are none.
func TestAim_Choose_theBestOfAll(t *testing.T) {
	probabilities := []float64{0.9, 0.8, 0.7, 0.6, 0.6, 0.3, 0.1}
	positive := []bool{true, false, true, true, false, false, true}
	for _, row := range []struct {
		aim                      decision.Aim
		value, precision, recall float64
	}{
		{decision.Aim{}, 0.05, 4. / 7, 1},
		{decision.Aim{Precision: 1}, 0.85, 1, 0.25},
		{decision.Aim{Precision: 0.6}, 0.45, 0.6, 0.75},
		{decision.Aim{Recall: 0.5}, 0.65, 2. / 3, 0.5},
		{decision.Aim{Recall: 0.6}, 0.45, 0.6, 0.75},
		{decision.Aim{Recall: 1}, 0.05, 4. / 7, 1},
	} {
		best, err := row.aim.Choose(probabilities, positive)
		require.NoError(t, err)
		require.InDelta(t, row.value, best.Value, 1e-12, "%+v", row.aim)
		require.InDelta(t, row.precision, best.Precision, 1e-12, "%+v", row.aim)
		require.InDelta(t, row.recall, best.Recall, 1e-12, "%+v", row.aim)
		require.InDelta(t, 2*row.precision*row.recall/(row.precision+row.recall), best.F1, 1e-12, "%+v", row.aim)
	}
	next := math.Nextafter(0.5, 1)
	best, err := decision.Aim{}.Choose([]float64{next, 0.5}, []bool{true, false})
	require.NoError(t, err)
	require.Equal(t, decision.Threshold{Value: 0.5, Precision: 1, Recall: 1, F1: 1}, best, "no float is between the two")
}

func TestAim_Choose_refuses(t *testing.T) {
	two := []bool{true, false}
	for want, row := range map[string]struct {
		aim           decision.Aim
		probabilities []float64
		positive      []bool
	}{
		"decision: the aim is":                            {decision.Aim{Precision: 2}, []float64{1, 0}, two},
		"expected one of the two: the other is maximized": {decision.Aim{Precision: 0.5, Recall: 0.5}, []float64{1, 0}, two},
		"decision: the aim is {Precision:NaN Recall:0}":   {decision.Aim{Precision: math.NaN()}, []float64{1, 0}, two},
		"decision: number 0 is NaN":                       {decision.Aim{}, []float64{math.NaN(), 0}, two},
		"decision: no threshold reaches a precision of 0.9: the best that a threshold reaches is 0.5": {decision.Aim{Precision: 0.9}, []float64{0.2, 0.8}, two},
		"decision: no threshold reaches a recall of 1: the best that a threshold reaches is 0.5":      {decision.Aim{Recall: 1}, []float64{0, 0.8, 0.5}, []bool{true, true, false}},
		"decision: there are 1 numbers for 2 examples":                                                {decision.Aim{}, []float64{1}, two},
	} {
		best, err := row.aim.Choose(row.probabilities, row.positive)
		require.ErrorContains(t, err, want)
		require.Zero(t, best)
	}
	require.ErrorContains(t, decision.Aim{Precision: 2}.Check(), "decision: the aim is {Precision:2 Recall:0}, expected a Precision or a")
}
